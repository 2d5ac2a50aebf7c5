import { dirname, join } from "node:path";
import type { ClusterRecord } from "../../cluster/record.ts";
import { abandonedCreations } from "../../system/creation-folder.ts";
import { stateFolder } from "../../system/state-folder.ts";
import type { Backend, Surroundings } from "../backend.ts";
import { keptResolution } from "../kept-resolution.ts";
import { hostArchitecture } from "./architecture.ts";
import { readClusters } from "./cluster-facts.ts";
import { assertIdIsFree } from "./cluster-exists.ts";
import { destroy } from "./destroy.ts";
import { consoleOutputs } from "./evidence.ts";
import { ipDetect } from "./ip-detect.ts";
import { type Making, remainsText } from "./making.ts";
import { describePlan } from "./plan.ts";
import { provision } from "./provision.ts";
import { openQemu } from "./qemu.ts";
import { observeCluster } from "./records.ts";
import { resolveCreation, type ResolvedCreation } from "./resolve-creation.ts";
import type { VmCreation } from "./vm-creation.ts";

/** Clusters of QEMU's virtual machines on this machine. All that is known of them lies in their folders. */
export function createVmBackend(surroundings: Surroundings): Backend<VmCreation> {
  const { environment } = surroundings;
  const qemu = openQemu(surroundings, hostArchitecture());
  const ownRoot = join(stateFolder(environment), "vm");
  const current: { making?: Making } = {};
  const resolution = keptResolution<VmCreation, ResolvedCreation>(async (request, signal) =>
    resolveCreation(qemu, request, environment, signal),
  );
  return {
    name: "vm",
    place: undefined,
    ipDetect,
    ipDetectPublic: undefined,
    remainsText: () => remainsText(current.making),
    plan: async (request, signal) => {
      const { clusterId } = request;
      const [resolved, clusters, abandoned] = await Promise.all([
        resolution.find(request, signal),
        readClusters(ownRoot),
        abandonedCreations(ownRoot, clusterId),
      ]);
      const leaving = abandoned.map(({ creation }) => creation.creationId);
      assertIdIsFree(clusters, clusterId, leaving);
      return describePlan(request, resolved);
    },
    provision: async (request, onNode, signal) =>
      provision(
        {
          qemu,
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
    find: async (clusterId) => {
      const stored = (await readClusters(ownRoot)).find(({ facts }) => facts.clusterId === clusterId);
      return stored === undefined ? undefined : observeCluster(stored);
    },
    findElsewhere: async () => Promise.resolve([]),
    list: async () => listClusters(ownRoot),
    destroy: async (cluster, signal) => destroy(cluster, surroundings, signal),
    evidence: async (cluster) => consoleOutputs(cluster),
  };
}

async function listClusters(root: string): Promise<readonly ClusterRecord[]> {
  const clusters = await Promise.all((await readClusters(root)).map(observeCluster));
  return clusters.toSorted((a, b) => a.id.localeCompare(b.id));
}
