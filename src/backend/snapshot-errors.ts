import { ClusterError } from "../errors.ts";
import type { ClusterName } from "../model/cluster-record.ts";

/** Throws `snapshot-exists` if the cluster has a complete snapshot with this name. An incomplete one is replaced. */
export function assertIncomplete({ id }: ClusterName, name: string, isComplete: boolean): void {
  if (!isComplete) return;
  throw new ClusterError("snapshot-exists", `Cluster "${id}" has a snapshot "${name}" already.`, {
    hint: "Choose another name, or delete that snapshot first.",
    facts: { cluster: id, snapshot: name },
  });
}

export const snapshotNotFound = ({ id }: ClusterName, name: string, others: readonly string[]): ClusterError =>
  new ClusterError("snapshot-not-found", `Cluster "${id}" has no snapshot "${name}".`, {
    hint: others.length === 0 ? "It has none at all." : `It has: ${others.join(", ")}.`,
    facts: { cluster: id, snapshot: name, others },
  });

/** For a snapshot that cannot be restored because of what is missing. */
export const notWhole = ({ id }: ClusterName, name: string): ClusterError =>
  new ClusterError("snapshot-unusable", `The snapshot "${name}" of cluster "${id}" is incomplete.`, {
    hint: "Delete it, or make it again under the same name.",
    facts: { cluster: id, snapshot: name },
  });
