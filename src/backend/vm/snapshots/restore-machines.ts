import { constants, copyFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { errorCode } from "../../../system/files/private-file.ts";
import { readBootId } from "../../../system/processes/process-identity.ts";
import type { Clock } from "../../../system/runtime.ts";
import { type NodeFacts, type StoredCluster, writeClusterFacts } from "../cluster-facts.ts";
import { startMachines } from "../machines/launch.ts";
import { allProcessFiles, endMachines, machineFiles } from "../machines/machine-process.ts";
import { makeSocketsFolder, removeSockets } from "../machines/private-network.ts";
import type { Qemu } from "../qemu/qemu.ts";
import { loadState } from "./machine-state.ts";
import { resumeMachines } from "./pause-machines.ts";
import { type SnapshotFacts, copyFailure, savedFiles } from "./snapshot-files.ts";

const atOnce = 4;

/**
 * Ends the machines, puts back their disks, and starts them from the saved memory. All continue at
 * about the same moment.
 */
export async function restoreMachines(
  qemu: Qemu,
  plan: RestorePlan,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, saved, clock } = plan;
  const { directory, facts } = cluster;
  // The disks are copied while the machines still run, so that a full disk harms nobody.
  try {
    await mapConcurrently(facts.nodes, atOnce, async (node) => copyDisks(plan, node), signal);
  } catch (error) {
    await Promise.all(facts.nodes.map(async (node) => removeDrafts(directory, node)));
    throw error;
  }
  await endMachines(await allProcessFiles(directory), clock, signal);
  await removeSockets(directory);
  await mapConcurrently(facts.nodes, atOnce, async (node) => swapDisks(directory, node), signal);
  const restarted = { ...facts, machines: saved.machines, bootId: await readBootId() };
  await writeClusterFacts(directory, restarted);
  await continueMachines(qemu, { ...plan, cluster: { directory, facts: restarted } }, signal);
}

const draft = (path: string): string => `${path}.restored`;

async function copyDisks({ cluster, folder, saved }: RestorePlan, node: NodeFacts): Promise<void> {
  const machine = machineFiles(cluster.directory, node);
  const files = savedFiles(node);
  try {
    await copyFile(join(folder, files.disk), draft(machine.disk), constants.COPYFILE_FICLONE);
    if (saved.files[files.variables] === undefined) return;
    await copyFile(
      join(folder, files.variables),
      draft(machine.flash.variables),
      constants.COPYFILE_FICLONE,
    );
  } catch (error) {
    throw copyFailure(error, node, "restored");
  }
}

async function removeDrafts(directory: string, node: NodeFacts): Promise<void> {
  const { disk, flash } = machineFiles(directory, node);
  for (const path of [disk, flash.variables]) await rm(draft(path), { force: true });
}

async function swapDisks(directory: string, node: NodeFacts): Promise<void> {
  const { disk, flash, pid } = machineFiles(directory, node);
  await rename(draft(disk), disk);
  await rename(draft(flash.variables), flash.variables).catch((error: unknown) => {
    if (errorCode(error) !== "ENOENT") throw error;
  });
  // It stays marked as started once: if the restore ends early, `start` boots it from this disk.
  await rm(pid, { force: true });
}

interface ContinuePlan {
  /** Its disks are those of the snapshot. */
  readonly cluster: StoredCluster;
  readonly folder: string;
  readonly saved: Pick<SnapshotFacts, "machines">;
  readonly clock: Clock;
  readonly boots?: boolean;
  /** Whether no port of this computer may lead to the machines yet, because they have another cluster's keys. */
  readonly opensPortsLater?: boolean;
}

export interface RestorePlan extends ContinuePlan {
  readonly saved: SnapshotFacts;
}

/** Starts machines from saved memory. All continue at about the same moment. */
export async function continueMachines(
  qemu: Qemu,
  plan: ContinuePlan,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, folder, saved, clock, boots = false, opensPortsLater } = plan;
  const { directory, facts } = cluster;
  const sockets = await makeSocketsFolder(directory);
  await startMachines(
    qemu,
    {
      directory,
      facts,
      options: saved.machines,
      accelerator: saved.machines.accelerator,
      isSandboxed: saved.machines.isSandboxed,
      sockets: { folder: sockets, count: facts.nodes.length },
      clock,
      ...(!boots && { memoryOf: (node) => join(folder, savedFiles(node).memory) }),
      isOfTemplate: saved.machines.template !== undefined,
      opensPortsLater,
    },
    {
      follow: async (node) => {
        if (!boots)
          await loadState(
            { directory, node, state: join(folder, savedFiles(node).state), clock },
            signal,
          );
      },
    },
    signal,
  );
  if (!boots) await resumeMachines({ directory, nodes: facts.nodes }, signal);
}
