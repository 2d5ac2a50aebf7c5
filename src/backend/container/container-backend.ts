import { platform } from "node:os";
import { ClusterError } from "../../errors.ts";
import { abandonedCreations } from "../../system/files/creation-folder.ts";
import type { Backend } from "../../model/backend.ts";
import type { CreationRequest } from "../../model/creation.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import { ipDetect } from "../ip-detect.ts";
import { chooseEngine } from "./engine/choose-engine.ts";
import { clusterConsoleOutput } from "./console-output.ts";
import { ContainerCreation } from "./container-creation.ts";
import type { ContainerOptions } from "./container-options.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import type { Selection } from "./records/describe.ts";
import { strangerText } from "../stranger.ts";
import type { Engine } from "./engine/engine.ts";
import type { EngineName } from "./engine/engine-kind.ts";
import { hostCgroupsAdvice } from "./launch/containerfiles.ts";
import { findElsewhere } from "./records/find-elsewhere.ts";
import { assertIdIsFree, creationsRoot, readInventory } from "./records/inventory.ts";
import { toClusters } from "./records/records.ts";
import { removeCreation } from "./remove-creation.ts";
import { resolveCreation } from "./launch/resolve-creation.ts";

/** Opens clusters of containers on this machine with the named engine, or else the first one found. Throws `machine-not-set-up` if there is none. */
export async function openContainerBackend(
  { engine: named }: { readonly engine: EngineName | undefined },
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<Backend<ContainerOptions>> {
  return createContainerBackend(await chooseEngine(named, surroundings, signal), surroundings);
}

function createContainerBackend(engine: Engine, surroundings: Surroundings): Backend<ContainerOptions> {
  const root = creationsRoot(engine, surroundings);
  const readClusters = async (selection: Selection, signal: AbortSignal): Promise<readonly ClusterRecord[]> => {
    const inventory = await readInventory(engine, selection, root, signal);
    for (const stranger of inventory.strangers) surroundings.progress.detail(1, strangerText(stranger));
    return toClusters(inventory, root);
  };
  return {
    name: "container",
    // Engines know nothing about each other's containers, just as regions don't know each other's machines.
    place: { kind: "engine", name: engine.kind.name, option: "engine" },
    ipDetect,
    ipDetectPublic: undefined,
    nodesKeepTime: false,
    cgroups1Advice: hostCgroupsAdvice,
    plan: async (request, signal) => planCreation(engine, { root, request }, surroundings, signal),
    find: async (clusterId, signal) => {
      const clusters = await readClusters({ clusterId }, signal);
      // Two creates of one id at the same time briefly leave two clusters. The one with nodes counts.
      return clusters.find((cluster) => cluster.nodes.length > 0) ?? clusters[0];
    },
    findElsewhere: async (clusterId, signal) => findElsewhere(engine, clusterId, surroundings, signal),
    list: async (signal) => readClusters("all", signal),
    remove: async ({ id: clusterId, creationId }, signal) => {
      const left = await removeCreation(engine, { clusterId, creationId }, surroundings.clock, signal);
      if (left === undefined) return;
      throw new ClusterError("engine-failed", left, { hint: "Try again.", facts: { clusterId, creationId } });
    },
    consoleOutput: async (cluster, signal) => clusterConsoleOutput(engine, cluster, signal),
  };
}

async function planCreation(
  engine: Engine,
  { root, request }: { readonly root: string; readonly request: CreationRequest<ContainerOptions> },
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<ContainerCreation> {
  const { clusterId } = request;
  const [resolved, inventory, abandoned] = await Promise.all([
    resolveCreation(engine, request, platform(), signal),
    readInventory(engine, { clusterId }, root, signal),
    abandonedCreations(root, clusterId),
  ]);
  assertIdIsFree(engine, inventory, { clusterId, leaving: abandoned.map(({ creation }) => creation.creationId) });
  return new ContainerCreation({ engine, root, request, resolved }, surroundings);
}
