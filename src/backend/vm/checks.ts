import { freemem, platform, totalmem } from "node:os";
import { join } from "node:path";
import { type Check, localLimitMs } from "../../model/check.ts";
import { stateFolder } from "../../system/files/state-folder.ts";
import type { Runtime } from "../../system/runtime.ts";
import { hostArchitecture } from "./qemu/architecture.ts";
import { acceleratorCheck, featuresCheck, firmwareCheck, qemuCheck } from "./checks/engine.ts";
import { diskCheck, imageCheck, memoryCheck } from "./checks/host.ts";
import { openQemu } from "./qemu/qemu.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { leftovers } from "../leftovers.ts";
import { withForeignResources } from "../with-foreign-resources.ts";
import { removalCommand, foreignFolders, readClusters } from "./cluster-facts.ts";
import { isRunning } from "./machines/machine-process.ts";
import { networkFiles } from "./machines/private-network.ts";
import { observeCluster } from "./records.ts";
import { readSnapshotFolders } from "./snapshots/snapshot-files.ts";

/** Returns `doctor`'s checks for clusters of virtual machines, in display order. They change nothing. */
export function vmChecks(runtime: Runtime, architecture = hostArchitecture()): readonly Check[] {
  const qemu = openQemu(runtime, architecture);
  const root = join(stateFolder(runtime.environment), "vm");
  return [
    qemuCheck(qemu),
    acceleratorCheck(qemu, platform(), runtime.environment),
    featuresCheck(qemu),
    firmwareCheck(qemu),
    memoryCheck({ totalBytes: totalmem(), freeBytes: freemem() }),
    diskCheck(root),
    imageCheck(runtime.environment),
    leftoversCheck(root),
  ];
}

/** Reports what interrupted creates left behind, and clusters without a running machine. */
export function leftoversCheck(root: string): Check {
  return {
    name: "leftovers",
    limitMs: localLimitMs,
    run: async () => {
      const clusters = await Promise.all((await readClusters(root)).map(observeCluster));
      const outcome = await leftovers({ clusters, root, removal: removalCommand, troubleOf });
      return withForeignResources(
        outcome,
        await foreignFolders(root),
        `Remove it, or replace the link with the folder itself in ${root}`,
      );
    },
  };
}

async function troubleOf({ nodes, directory }: ClusterRecord): Promise<string | undefined> {
  if (nodes.length === 0) return `${join(directory, "cluster.json")} cannot be read`;
  const incomplete = (await readSnapshotFolders(directory)).find(({ isComplete }) => !isComplete);
  if (incomplete !== undefined) return `its snapshot "${incomplete.name}" is incomplete`;
  const isConnected = nodes.length === 1 || (await isRunning(networkFiles(directory)));
  return isConnected ? undefined : "the process of its private network has ended";
}
