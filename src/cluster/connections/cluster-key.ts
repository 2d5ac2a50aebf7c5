import { isAccessible } from "../../system/files/is-accessible.ts";
import { ClusterError } from "../../errors.ts";
import { creationFiles } from "../../system/files/creation-folder.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { renderSshConfig } from "../../ssh/config.ts";
import { readKeyPair } from "../../ssh/keys.ts";

/** Returns the path of the cluster's SSH key, and whether this machine has it. */
export async function clusterKey(cluster: ClusterRecord): Promise<{ readonly path: string; readonly isHere: boolean }> {
  const path = creationFiles(cluster.directory).privateKey;
  return { path, isHere: await isAccessible(path) };
}

/** Throws `key-missing`. */
export async function assertKeyIsHere(cluster: ClusterRecord): Promise<void> {
  if (!(await clusterKey(cluster)).isHere) throw keyMissing(cluster);
}

export function keyMissing(cluster: ClusterRecord): ClusterError {
  const path = creationFiles(cluster.directory).privateKey;
  const handOver = cluster.backend === "cloud" ? " Run the export command there, and the import command here." : "";
  return new ClusterError("key-missing", `The SSH key of cluster "${cluster.id}" is not on this machine.`, {
    hint: `The cluster was created on another machine, or the key was deleted.${handOver} The key belongs at ${path}.`,
    facts: { cluster: cluster.id, path },
  });
}

/** Returns an OpenSSH configuration with one `Host` per running node. Throws `key-missing` if this machine cannot log in. */
export async function sshConfig(cluster: ClusterRecord): Promise<string> {
  if (!(await clusterKey(cluster)).isHere) throw keyMissing(cluster);
  const files = creationFiles(cluster.directory);
  const reachable = cluster.nodes.filter((node) => node.state === "running" && node.ssh.host !== "");
  return renderSshConfig(reachable, { identityFile: files.privateKey, knownHostsFile: files.knownHosts });
}

/** Fails as `bad-usage` if the file is not a private key that can open a cluster. */
export async function assertOwnKey(path: string): Promise<void> {
  await readKeyPair(path);
}
