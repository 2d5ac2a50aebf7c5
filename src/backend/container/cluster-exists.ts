import { clusterExists } from "../local-backend.ts";
import { destroyCommand, type Engine } from "./engine.ts";
import type { Inventory } from "./records.ts";

/** Throws `cluster-exists` where something of this cluster id is there; `leaving` are creations that are about to be removed. */
export function assertIdIsFree(
  engine: Engine,
  inventory: Inventory,
  { clusterId, leaving }: { readonly clusterId: string; readonly leaving: readonly string[] },
): void {
  const isTaken = inventory.networks.some(
    (network) => network.clusterId === clusterId && !leaving.includes(network.creationId),
  );
  if (isTaken) throw clusterExists(clusterId, { removal: destroyCommand(engine, clusterId) });
}
