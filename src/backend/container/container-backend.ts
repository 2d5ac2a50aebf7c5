import { platform } from "node:os";
import { dirname, join } from "node:path";
import { abandonedCreations } from "../../system/creation-folder.ts";
import { stateFolder } from "../../system/state-folder.ts";
import type { Backend, Surroundings } from "../backend.ts";
import { ipDetect } from "../ip-detect.ts";
import { keptResolution } from "../kept-resolution.ts";
import { assertIdIsFree } from "./cluster-exists.ts";
import type { ContainerCreation } from "./container-creation.ts";
import { describeContainers, describeNetworks, type Selection } from "./describe.ts";
import { destroy } from "./destroy.ts";
import { openEngine } from "./engine.ts";
import { consoleOutputs } from "./evidence.ts";
import { type Making, remainsText } from "./making.ts";
import { describePlan } from "./plan.ts";
import { provision } from "./provision.ts";
import { type Inventory, toClusters } from "./records.ts";
import { resolveCreation, type ResolvedCreation } from "./resolve-creation.ts";

/** Clusters of containers on this machine. The engine is asked by the first call. */
export function createContainerBackend(surroundings: Surroundings): Backend<ContainerCreation> {
  const engine = openEngine(surroundings);
  const ownRoot = join(stateFolder(surroundings.environment), "container");
  const current: { making?: Making } = {};
  const take = async (selection: Selection, signal: AbortSignal): Promise<Inventory> => {
    const [containers, networks] = await Promise.all([
      describeContainers(engine, selection, signal),
      describeNetworks(engine, selection, signal),
    ]);
    return { containers, networks };
  };
  const resolution = keptResolution<ContainerCreation, ResolvedCreation>(async (request, signal) =>
    resolveCreation(engine, request, platform(), signal),
  );
  return {
    name: "container",
    place: undefined,
    ipDetect,
    ipDetectPublic: undefined,
    remainsText: () => remainsText(current.making),
    plan: async (request, signal) => {
      const { clusterId } = request;
      const [resolved, inventory, abandoned] = await Promise.all([
        resolution.find(request, signal),
        take({ clusterId }, signal),
        abandonedCreations(ownRoot, clusterId),
      ]);
      const leaving = abandoned.map(({ creation }) => creation.creationId);
      assertIdIsFree(inventory, clusterId, leaving);
      return describePlan(request, resolved);
    },
    provision: async (request, onNode, signal) =>
      provision(
        {
          engine,
          root: dirname(request.directory),
          request,
          resolve: async (inner) => resolution.take(request, inner),
          surroundings,
          onNode,
          onMaking: (making) => {
            current.making = making;
          },
        },
        signal,
      ),
    find: async (clusterId, signal) => {
      const clusters = toClusters(await take({ clusterId }, signal), ownRoot);
      // What two creates of one id at the same moment leave for a moment: the one with nodes is the one.
      return clusters.find((cluster) => cluster.nodes.length > 0) ?? clusters[0];
    },
    findElsewhere: async () => Promise.resolve([]),
    list: async (signal) => toClusters(await take("all", signal), ownRoot),
    destroy: async (cluster, signal) => destroy(engine, cluster, surroundings, signal),
    evidence: async (cluster, signal) => consoleOutputs(engine, cluster, signal),
  };
}
