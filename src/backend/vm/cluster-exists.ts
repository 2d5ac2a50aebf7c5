import { ClusterError } from "../../errors.ts";
import type { StoredCluster } from "./cluster-facts.ts";

/** Throws `cluster-exists` where something of this cluster id is there; `leaving` are creations that are about to be removed. */
export function assertIdIsFree(
  clusters: readonly StoredCluster[],
  clusterId: string,
  leaving: readonly string[],
): void {
  const isTaken = clusters.some(({ facts }) => facts.clusterId === clusterId && !leaving.includes(facts.creationId));
  if (!isTaken) return;
  throw new ClusterError("cluster-exists", `A cluster "${clusterId}" exists, or is being created, on this machine.`, {
    hint: `Choose another --cluster-id, or remove it: cluster-vm destroy --cluster-id ${clusterId}`,
    facts: { cluster: clusterId },
  });
}
