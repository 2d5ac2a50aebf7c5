import { join } from "node:path";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { stateFolder } from "../../system/state-folder.ts";
import type { Backend, Surroundings } from "../backend.ts";
import { cgroups1Advice } from "../cgroups1.ts";
import { hostArchitecture } from "./architecture.ts";
import { readClusters } from "./cluster-facts.ts";
import { assertIdIsFree } from "./cluster-exists.ts";
import { destroy } from "./destroy.ts";
import { evidence } from "./evidence.ts";
import { localBackend } from "../local-backend.ts";
import { cgroups1Distributions } from "./images.ts";
import { ipDetect } from "./ip-detect.ts";
import { type Making, remainsText } from "./making.ts";
import { describePlan } from "./plan.ts";
import { provision } from "./provision.ts";
import { openQemu } from "./qemu.ts";
import { observeCluster } from "./records.ts";
import { resolveCreation, type ResolvedCreation } from "./resolve-creation.ts";
import type { VmOptions } from "./vm-options.ts";

/** Clusters of QEMU's virtual machines on this machine. All that is known of them lies in their folders. */
export function createVmBackend(surroundings: Surroundings): Backend<VmOptions> {
  const { environment } = surroundings;
  const qemu = openQemu(surroundings, hostArchitecture());
  const ownRoot = join(stateFolder(environment), "vm");
  return {
    ...localBackend<VmOptions, ResolvedCreation, Making>(
      {
        name: "vm",
        place: undefined,
        findElsewhere: async () => Promise.resolve({ places: [], silent: [] }),
        ipDetect,
        cgroups1Advice: cgroups1Advice(cgroups1Distributions),
        root: ownRoot,
        remainsText,
        resolve: async (request, signal) => resolveCreation(qemu, request, environment, signal),
        assertIdIsFree: async (clusterId, leaving) => assertIdIsFree(await readClusters(ownRoot), clusterId, leaving),
        describePlan,
        provision: async (work, signal) => provision({ ...work, qemu }, signal),
      },
      surroundings,
    ),
    find: async (clusterId) => {
      const stored = (await readClusters(ownRoot)).find(({ facts }) => facts.clusterId === clusterId);
      return stored === undefined ? undefined : observeCluster(stored);
    },
    list: async () => listClusters(ownRoot),
    destroy: async (cluster, signal) => destroy(cluster, surroundings, signal),
    evidence,
  };
}

async function listClusters(root: string): Promise<readonly ClusterRecord[]> {
  const clusters = await Promise.all((await readClusters(root)).map(observeCluster));
  return clusters.toSorted((a, b) => a.id.localeCompare(b.id));
}
