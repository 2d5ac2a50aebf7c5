import { join } from "node:path";
import type { Environment } from "../../../system/runtime.ts";
import { abandonedCreations } from "../../../system/files/creation-folder.ts";
import { stateFolder } from "../../../system/files/state-folder.ts";
import { clusterExists } from "../../cluster-exists.ts";
import type { ForeignResource } from "../../foreign-resource.ts";
import { describe, type Selection } from "./describe.ts";
import { removalCommand, type Engine } from "../engine/engine.ts";
import { readContainers } from "./read-containers.ts";
import type { Inventory } from "./records.ts";

/** Reads what the engine has of ours, and what only looks like it; `root` is the folder of this machine's creations. */
export async function readInventory(
  engine: Engine,
  selection: Selection,
  root: string,
  signal: AbortSignal,
): Promise<Inventory & { readonly foreignResources: readonly ForeignResource[] }> {
  const reading = readContainers(await describe(engine, selection, signal));
  const clusterIds = new Set(reading.networks.map(({ clusterId }) => clusterId));
  const abandoned = await Promise.all([...clusterIds].map(async (clusterId) => abandonedCreations(root, clusterId)));
  return { ...reading, abandoned: new Set(abandoned.flat().map(({ creation }) => creation.creationId)) };
}

/**
 * Throws `cluster-exists` if anything with this cluster id exists; `leaving` are creations that are about to be
 * removed.
 */
export function assertIdIsFree(
  engine: Engine,
  inventory: Inventory,
  { clusterId, leaving }: { readonly clusterId: string; readonly leaving: readonly string[] },
): void {
  const isTaken = inventory.networks.some(
    (network) => network.clusterId === clusterId && !leaving.includes(network.creationId),
  );
  if (isTaken) throw clusterExists(clusterId, { removal: removalCommand(engine, clusterId) });
}

/** Returns the folder of the creations that this machine has made with the engine. */
export const creationsRoot = (
  { kind }: Pick<Engine, "kind">,
  { environment }: { readonly environment: Environment },
): string => join(stateFolder(environment), "container", kind.name);
