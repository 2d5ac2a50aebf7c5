import { clusterExists } from "../local-backend.ts";
import type { StoredCluster } from "./cluster-facts.ts";
import { destroyCommand } from "./destroy-command.ts";

/** Throws `cluster-exists` where something of this cluster id is there; `leaving` are creations that are about to be removed. */
export function assertIdIsFree(
  clusters: readonly StoredCluster[],
  clusterId: string,
  leaving: readonly string[],
): void {
  const isTaken = clusters.some(({ facts }) => facts.clusterId === clusterId && !leaving.includes(facts.creationId));
  if (isTaken) throw clusterExists(clusterId, { removal: destroyCommand(clusterId) });
}
