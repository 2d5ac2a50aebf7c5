import { platform } from "node:os";
import { join } from "node:path";
import { stateFolder } from "../../system/state-folder.ts";
import type { Backend, Surroundings } from "../backend.ts";
import { ipDetect } from "../ip-detect.ts";
import { localBackend } from "../local-backend.ts";
import { assertIdIsFree } from "./cluster-exists.ts";
import type { ContainerCreation } from "./container-creation.ts";
import { describeContainers, describeNetworks, type Selection } from "./describe.ts";
import { destroy } from "./destroy.ts";
import { openEngine } from "./engine.ts";
import { evidence } from "./evidence.ts";
import { type Making, remainsText } from "./making.ts";
import { describePlan } from "./plan.ts";
import { provision } from "./provision.ts";
import { type Inventory, toClusters } from "./records.ts";
import { resolveCreation, type ResolvedCreation } from "./resolve-creation.ts";

/** Clusters of containers on this machine. The engine is asked by the first call. */
export function createContainerBackend(surroundings: Surroundings): Backend<ContainerCreation> {
  const engine = openEngine(surroundings);
  const ownRoot = join(stateFolder(surroundings.environment), "container");
  const take = async (selection: Selection, signal: AbortSignal): Promise<Inventory> => {
    const [containers, networks] = await Promise.all([
      describeContainers(engine, selection, signal),
      describeNetworks(engine, selection, signal),
    ]);
    return { containers, networks };
  };
  return {
    ...localBackend<ContainerCreation, ResolvedCreation, Making>(
      {
        name: "container",
        ipDetect,
        root: ownRoot,
        remainsText,
        resolve: async (request, signal) => resolveCreation(engine, request, platform(), signal),
        assertIdIsFree: async (clusterId, leaving, signal) =>
          assertIdIsFree(await take({ clusterId }, signal), clusterId, leaving),
        describePlan,
        provision: async (work, signal) => provision({ ...work, engine }, signal),
      },
      surroundings,
    ),
    find: async (clusterId, signal) => {
      const clusters = toClusters(await take({ clusterId }, signal), ownRoot);
      // What two creates of one id at the same moment leave for a moment: the one with nodes is the one.
      return clusters.find((cluster) => cluster.nodes.length > 0) ?? clusters[0];
    },
    list: async (signal) => toClusters(await take("all", signal), ownRoot),
    destroy: async (cluster, signal) => destroy(engine, cluster, surroundings, signal),
    evidence: async (cluster, signal) => evidence(engine, cluster, signal),
  };
}
