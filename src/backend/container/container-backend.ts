import { platform } from "node:os";
import type { Backend, Surroundings } from "../backend.ts";
import { hostCgroupsAdvice } from "./containerfiles.ts";
import { ipDetect } from "../ip-detect.ts";
import { localBackend } from "../local-backend.ts";
import { assertIdIsFree } from "./cluster-exists.ts";
import type { ContainerOptions } from "./container-options.ts";
import { chooseEngine } from "./choose-engine.ts";
import { destroy } from "./destroy.ts";
import type { Engine } from "./engine.ts";
import type { EngineName } from "./engine-kinds.ts";
import { evidence } from "./evidence.ts";
import { findElsewhere } from "./find-elsewhere.ts";
import { creationsRoot, readInventory } from "./inventory.ts";
import { type Making, remainsText } from "./making.ts";
import { describePlan } from "./plan.ts";
import { provision } from "./provision.ts";
import { toClusters } from "./records.ts";
import { resolveCreation, type ResolvedCreation } from "./resolve-creation.ts";

/** Clusters of containers on this machine, of the engine that is named, or else found. Throws `machine-not-set-up` where there is none. */
export async function openContainerBackend(
  { engine: named }: { readonly engine: EngineName | undefined },
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<Backend<ContainerOptions>> {
  return createContainerBackend(await chooseEngine(named, surroundings, signal), surroundings);
}

function createContainerBackend(engine: Engine, surroundings: Surroundings): Backend<ContainerOptions> {
  const ownRoot = creationsRoot(engine, surroundings);
  return {
    ...localBackend<ContainerOptions, ResolvedCreation, Making>(
      {
        name: "container",
        // Engines know nothing of each other's containers, as regions don't of each other's machines.
        place: { kind: "engine", name: engine.kind.name, option: "--engine" },
        findElsewhere: async (clusterId, signal) => findElsewhere(engine, clusterId, surroundings, signal),
        ipDetect,
        cgroups1Advice: hostCgroupsAdvice,
        root: ownRoot,
        remainsText: (making) => remainsText(engine, making),
        resolve: async (request, signal) => resolveCreation(engine, request, platform(), signal),
        assertIdIsFree: async (clusterId, leaving, signal) =>
          assertIdIsFree(engine, await readInventory(engine, { clusterId }, ownRoot, signal), { clusterId, leaving }),
        describePlan,
        provision: async (work, signal) => provision({ ...work, engine }, signal),
      },
      surroundings,
    ),
    find: async (clusterId, signal) => {
      const clusters = toClusters(await readInventory(engine, { clusterId }, ownRoot, signal), ownRoot);
      // What two creates of one id at the same moment leave for a moment: the one with nodes is the one.
      return clusters.find((cluster) => cluster.nodes.length > 0) ?? clusters[0];
    },
    list: async (signal) => toClusters(await readInventory(engine, "all", ownRoot, signal), ownRoot),
    destroy: async (cluster, signal) => destroy(engine, cluster, surroundings, signal),
    evidence: async (cluster, signal) => evidence(engine, cluster, signal),
  };
}
