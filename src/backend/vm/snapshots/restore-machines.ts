import { constants, copyFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { nodeReference } from "../../../model/cluster-record.ts";
import { outside } from "../../../outside-text.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { errorCode, systemTemporaryFolder } from "../../../system/files/private-file.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { poll } from "../../../system/retry.ts";
import { readBootId } from "../../../system/processes/process-identity.ts";
import type { Clock } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { type NodeFacts, type StoredCluster, writeClusterFacts } from "../cluster-facts.ts";
import { startMachines } from "../machines/launch.ts";
import { allProcessFiles, endMachines, isRunning, machineFiles } from "../machines/machine-process.ts";
import { recordSockets, removeSockets } from "../machines/private-network.ts";
import { queryRunState } from "../qemu/monitor.ts";
import { type Qemu, qemuMessage } from "../qemu/qemu.ts";
import { resumeMachines } from "./pause-machines.ts";
import { type SnapshotFacts, copyFailure, savedFiles } from "./snapshot-files.ts";

const atOnce = 4;

/** Ends the machines, puts back their disks, and starts them from the saved memory. All continue at about the same moment. */
export async function restoreMachines(qemu: Qemu, plan: RestorePlan, signal: AbortSignal): Promise<void> {
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
    await copyFile(join(folder, files.variables), draft(machine.flash.variables), constants.COPYFILE_FICLONE);
  } catch (error) {
    throw copyFailure(error, node, "restored");
  }
}

async function removeDrafts(directory: string, node: NodeFacts): Promise<void> {
  const { disk, flash } = machineFiles(directory, node);
  for (const path of [disk, flash.variables]) await rm(draft(path), { force: true });
}

async function swapDisks(directory: string, node: NodeFacts): Promise<void> {
  const { disk, flash, started, pid } = machineFiles(directory, node);
  await rename(draft(disk), disk);
  await rename(draft(flash.variables), flash.variables).catch((error: unknown) => {
    if (errorCode(error) !== "ENOENT") throw error;
  });
  for (const path of [started, pid]) await rm(path, { force: true });
}

export interface ContinuePlan {
  /** Its disks are those of the snapshot. */
  readonly cluster: StoredCluster;
  /** The snapshot's folder. */
  readonly folder: string;
  readonly saved: Pick<SnapshotFacts, "machines">;
  readonly clock: Clock;
  /** Whether they boot instead. */
  readonly boots?: boolean;
}

export interface RestorePlan extends ContinuePlan {
  readonly saved: SnapshotFacts;
}

/** Starts machines from saved memory. All continue at about the same moment. */
export async function continueMachines(qemu: Qemu, plan: ContinuePlan, signal: AbortSignal): Promise<void> {
  const { cluster, folder, saved, clock, boots = false } = plan;
  const { directory, facts } = cluster;
  const sockets = await systemTemporaryFolder();
  await recordSockets(directory, sockets.path);
  await startMachines(
    qemu,
    {
      directory,
      facts,
      options: saved.machines,
      accelerator: saved.machines.accelerator,
      isSandboxed: saved.machines.isSandboxed,
      sockets: { folder: sockets.path, count: facts.nodes.length },
      clock,
      ...(!boots && { memoryOf: (node) => join(folder, savedFiles(node).memory) }),
      template: saved.machines.template === undefined ? undefined : {},
    },
    {},
    signal,
  );
  if (boots) return;
  await Promise.all(facts.nodes.map(async (node) => awaitLoaded({ directory, node, clock }, signal)));
  await resumeMachines({ directory, nodes: facts.nodes });
}

/** Resolves when QEMU has loaded a machine's state. */
export async function awaitLoaded(
  { directory, node, clock }: { readonly directory: string; readonly node: NodeFacts; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const files = machineFiles(directory, node);
  const look = async (): Promise<true | undefined> => {
    const state = await queryRunState(files.folder);
    if (state === "paused" || state === "postmigrate") return true;
    if (state !== undefined || (await isRunning(files))) return undefined;
    const said = qemuMessage(await readOwnText(files.qemuLog).catch(() => ""), 2) ?? "it ended";
    throw new ClusterError(
      "engine-failed",
      `QEMU cannot continue ${nodeReference(node)} from its memory: ${outside(said)}.`,
      { hint: "Restore another snapshot, or create the cluster again." },
    );
  };
  if ((await poll(look, ruleOf(waits.memoryLoad, clock), signal)) !== undefined) return;
  throw new ClusterError("deadline-passed", `QEMU did not load the memory of ${nodeReference(node)} in time.`, {
    hint: "See whether this machine's disk is slow, then restore again.",
  });
}
