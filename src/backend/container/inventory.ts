import { join } from "node:path";
import type { Environment } from "../../system/environment.ts";
import { abandonedCreations } from "../../system/creation-folder.ts";
import { stateFolder } from "../../system/state-folder.ts";
import { clusterExists } from "../cluster-exists.ts";
import { describeContainers, describeNetworks, type Selection } from "./describe.ts";
import { destroyCommand, type Engine } from "./engine.ts";
import { type Inventory, labelsOf } from "./records.ts";

/** What of ours the engine has; `root` is the folder of this machine's creations. */
export async function readInventory(
  engine: Engine,
  selection: Selection,
  root: string,
  signal: AbortSignal,
): Promise<Inventory> {
  const [containers, networks] = await Promise.all([
    describeContainers(engine, selection, signal),
    describeNetworks(engine, selection, signal),
  ]);
  const labels = [...containers.map(labelsOf), ...networks.map((network) => network.labels)];
  const clusterIds = new Set(labels.map(({ clusterId }) => clusterId ?? ""));
  const abandoned = await Promise.all([...clusterIds].map(async (clusterId) => abandonedCreations(root, clusterId)));
  return { containers, networks, abandoned: new Set(abandoned.flat().map(({ creation }) => creation.creationId)) };
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
  if (isTaken) throw clusterExists(clusterId, { removal: destroyCommand(engine, clusterId) });
}

/** The folder of the creations that this machine has made with the engine. */
export const creationsRoot = (
  { kind }: Pick<Engine, "kind">,
  { environment }: { readonly environment: Environment },
): string => join(stateFolder(environment), "container", kind.name);
