import { join } from "node:path";
import type { ClusterName, ClusterRecord } from "../../model/cluster-record.ts";
import { stateFolder } from "../../store/state-folder.ts";
import type { Runtime } from "../../system/runtime.ts";
import type { Backend } from "../contract.ts";
import { foreignResourceText } from "../shared/foreign-resource.ts";
import { isOver, removeExpired } from "../shared/lifetimes.ts";
import { cgroups1Advice } from "../shared/machine-errors.ts";
import {
  type StoredCluster,
  assertIdCanBeClaimed,
  endOf,
  foreignFolders,
  readClusters,
} from "./cluster-facts.ts";
import { clusterConsoleOutput } from "./machines/console-sink.ts";
import { cgroups1Distributions, chooseDistribution } from "./images/images.ts";
import { ipDetect } from "./machines/private-network.ts";
import type { VmOptions } from "./options.ts";
import { resolveCreation } from "./plan.ts";
import { hostArchitecture } from "./qemu/architecture.ts";
import { openQemu } from "./qemu/qemu.ts";
import { observeCluster, removeCreation } from "./records.ts";
import { resumeForgotten } from "./snapshots/pause-machines.ts";
import { vmSnapshots } from "./snapshots/vm-snapshots.ts";
import { vmTemplates } from "./templates/vm-templates.ts";
import { VmCreation } from "./vm-creation.ts";
import { vmPower } from "./vm-power.ts";

/** Opens clusters of QEMU virtual machines on this machine. Everything known about them is in their folders. */
export function createVmBackend(runtime: Runtime, architecture = hostArchitecture()) {
  const { clock, environment } = runtime;
  const qemu = openQemu(runtime, architecture);
  const root = join(stateFolder(environment), "vm");
  const readPresent = async (): Promise<readonly StoredCluster[]> =>
    (await readClusters(root)).filter(({ facts }) => !isOver(endOf(facts), clock));
  const remove = async ({ directory }: ClusterName, signal: AbortSignal): Promise<void> =>
    removeCreation({ ...runtime, signal }, directory);
  return {
    name: "vm" as const,
    nodes: {
      ipDetect,
      ipDetectPublic: undefined,
      nodesKeepTime: false,
      cgroups1Advice: cgroups1Advice(cgroups1Distributions),
    },
    plan: async (asked, signal) => {
      const request = {
        ...asked,
        distribution: chooseDistribution(
          asked.distribution,
          asked.folderDistribution,
          asked.needsCgroups1,
        ),
      };
      const resolved = await resolveCreation(qemu, request, environment, signal);
      await assertIdCanBeClaimed(root, request.clusterId, clock);
      return new VmCreation({ qemu, root, request, resolved }, runtime);
    },
    find: async (clusterId, signal) => {
      const stored = (await readPresent()).find(({ facts }) => facts.clusterId === clusterId);
      return stored === undefined ? undefined : observeRunning(stored, signal);
    },
    list: async (_signal) => {
      for (const each of await foreignFolders(root))
        runtime.progress.detail(1, foreignResourceText(each));
      const clusters = await Promise.all((await readPresent()).map(observeCluster));
      return clusters.toSorted((a, b) => a.id.localeCompare(b.id));
    },
    remove,
    consoleOutput: async (cluster, signal) => clusterConsoleOutput(cluster, signal),
    local: {
      snapshots: vmSnapshots(qemu, root, runtime),
      templates: vmTemplates(runtime),
      power: vmPower(qemu, runtime),
      removeExpired: async (signal) => {
        const clusters = await readClusters(root);
        const expired = clusters.filter(({ facts }) => isOver(endOf(facts), clock));
        await removeExpired(
          { ...runtime, signal },
          await Promise.all(expired.map(observeCluster)),
          remove,
        );
      },
    },
  } satisfies Backend<VmOptions>;
}

/** Work on a cluster, unlike a list, needs machines that run, and can wait for a busy QEMU. */
async function observeRunning(stored: StoredCluster, signal: AbortSignal): Promise<ClusterRecord> {
  const { directory, facts } = stored;
  await resumeForgotten({ directory, nodes: facts.nodes }, signal).catch(() =>
    signal.throwIfAborted(),
  );
  return observeCluster(stored);
}
