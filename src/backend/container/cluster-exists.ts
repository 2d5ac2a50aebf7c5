import { ClusterError } from "../../errors.ts";
import { destroyCommand, type Engine } from "./engine.ts";
import type { Inventory } from "./records.ts";
import { labelsOf } from "./records.ts";

/** The refusal of an id that is taken. */
export function clusterExists(engine: Engine, clusterId: string, cause?: unknown): ClusterError {
  return new ClusterError("cluster-exists", `A cluster "${clusterId}" exists, or is being created, on this machine.`, {
    hint: `Choose another --cluster-id, or remove it: ${destroyCommand(engine, clusterId)}`,
    facts: { cluster: clusterId },
    cause,
  });
}

/** Throws `cluster-exists` where something of this cluster id is there; `leaving` are creations that are about to be removed. */
export function assertIdIsFree(
  engine: Engine,
  inventory: Inventory,
  { clusterId, leaving }: { readonly clusterId: string; readonly leaving: readonly string[] },
): void {
  const present = [...inventory.networks.map((network) => network.labels), ...inventory.containers.map(labelsOf)];
  const isTaken = present.some(
    (labels) => labels.clusterId === clusterId && !leaving.includes(labels.creationId ?? ""),
  );
  if (isTaken) throw clusterExists(engine, clusterId);
}
