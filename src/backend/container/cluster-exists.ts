import { clusterExists } from "../local-backend.ts";
import type { Inventory } from "./records.ts";
import { labelsOf } from "./records.ts";

/** Throws `cluster-exists` where something of this cluster id is there; `leaving` are creations that are about to be removed. */
export function assertIdIsFree(inventory: Inventory, clusterId: string, leaving: readonly string[]): void {
  const present = [...inventory.networks.map((network) => network.labels), ...inventory.containers.map(labelsOf)];
  const isTaken = present.some(
    (labels) => labels.clusterId === clusterId && !leaving.includes(labels.creationId ?? ""),
  );
  if (isTaken) throw clusterExists("container", clusterId);
}
