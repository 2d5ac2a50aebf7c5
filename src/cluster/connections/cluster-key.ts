import { access } from "node:fs/promises";
import { ClusterError } from "../../errors.ts";
import { creationFiles } from "../../system/files/creation-folder.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";

/** Returns the path of the cluster's SSH key, and whether this machine has it. */
export async function clusterKey(cluster: ClusterRecord): Promise<{ readonly path: string; readonly isHere: boolean }> {
  const path = creationFiles(cluster.directory).privateKey;
  try {
    await access(path);
    return { path, isHere: true };
  } catch {
    return { path, isHere: false };
  }
}

/** Throws `key-missing`. */
export async function assertKeyIsHere(cluster: ClusterRecord): Promise<void> {
  if (!(await clusterKey(cluster)).isHere) throw keyMissing(cluster);
}

export function keyMissing(cluster: ClusterRecord): ClusterError {
  const path = creationFiles(cluster.directory).privateKey;
  return new ClusterError("key-missing", `The SSH key of cluster "${cluster.id}" is not on this machine.`, {
    hint: `The cluster was created on another machine, or the key was deleted. It would be at ${path}.`,
    facts: { cluster: cluster.id, path },
  });
}
