import { platform } from "node:os";
import { dirname } from "node:path";
import { abandonedCreations } from "../../system/creation-folder.ts";
import type { Backend, Surroundings } from "../backend.ts";
import { ipDetect } from "../ip-detect.ts";
import { assertIdIsFree } from "./cluster-exists.ts";
import type { ContainerCreation } from "./container-creation.ts";
import { chooseEngine, otherEngines } from "./choose-engine.ts";
import { destroy } from "./destroy.ts";
import type { Engine } from "./engine.ts";
import type { EngineName } from "./engine-kinds.ts";
import { consoleOutputs } from "./evidence.ts";
import { creationsRoot, readInventory } from "./inventory.ts";
import { type Making, remainsText } from "./making.ts";
import { describePlan } from "./plan.ts";
import { provision } from "./provision.ts";
import { toClusters } from "./records.ts";
import { resolveCreation } from "./resolve-creation.ts";

/** Clusters of containers on this machine, of the engine that is named, or else found. Throws `machine-not-set-up` where there is none. */
export async function openContainerBackend(
  { engine: named }: { readonly engine: EngineName | undefined },
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<Backend<ContainerCreation>> {
  return createContainerBackend(await chooseEngine(named, surroundings, signal), surroundings);
}

function createContainerBackend(engine: Engine, surroundings: Surroundings): Backend<ContainerCreation> {
  const { name } = engine.kind;
  const ownRoot = creationsRoot(engine, surroundings);
  const current: { making?: Making } = {};
  return {
    name: "container",
    // Engines know nothing of each other's containers, as regions don't of each other's machines.
    place: { kind: "engine", name, option: "--engine" },
    ipDetect,
    ipDetectPublic: undefined,
    remainsText: () => remainsText(engine, current.making),
    plan: async (request, signal) => {
      const { clusterId } = request;
      const [resolved, inventory, abandoned] = await Promise.all([
        resolveCreation(engine, request, platform(), signal),
        readInventory(engine, { clusterId }, ownRoot, signal),
        abandonedCreations(ownRoot, clusterId),
      ]);
      const leaving = abandoned.map(({ creation }) => creation.creationId);
      assertIdIsFree(engine, inventory, { clusterId, leaving });
      return describePlan(request, resolved);
    },
    provision: async (request, onNode, signal) =>
      provision(
        {
          engine,
          root: dirname(request.directory),
          request,
          resolve: async (inner) => resolveCreation(engine, request, platform(), inner),
          surroundings,
          onNode,
          onMaking: (making) => {
            current.making = making;
          },
        },
        signal,
      ),
    find: async (clusterId, signal) => {
      const clusters = toClusters(await readInventory(engine, { clusterId }, ownRoot, signal), ownRoot);
      // What two creates of one id at the same moment leave for a moment: the one with nodes is the one.
      return clusters.find((cluster) => cluster.nodes.length > 0) ?? clusters[0];
    },
    findElsewhere: async (clusterId, signal) => findElsewhere(engine, clusterId, surroundings, signal),
    list: async (signal) => toClusters(await readInventory(engine, "all", ownRoot, signal), ownRoot),
    destroy: async (cluster, signal) => destroy(engine, cluster, surroundings, signal),
    evidence: async (cluster, signal) => consoleOutputs(engine, cluster, signal),
  };
}

async function findElsewhere(
  engine: Engine,
  clusterId: string,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const others = await otherEngines(engine.kind, surroundings, signal);
  const holds = async (other: Engine): Promise<boolean> =>
    toClusters(await readInventory(other, { clusterId }, creationsRoot(other, surroundings), signal), "").length > 0;
  const found = await Promise.all(others.map(async (other) => ((await holds(other)) ? [other.kind.name] : [])));
  return found.flat();
}
