import { constants, copyFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { nodeReference } from "../../../model/cluster-record.ts";
import { errorCode } from "../../../system/error-code.ts";
import { readBootId } from "../../../system/processes/boot-id.ts";
import { mapConcurrently } from "../../../system/map-concurrently.ts";
import { type NodeFacts, writeClusterFacts } from "../cluster-facts.ts";
import { allProcessFiles, machineFiles } from "../machines/machine-files.ts";
import { endMachines } from "../machines/machine-process.ts";
import { removeSockets } from "../machines/private-network.ts";
import type { Qemu } from "../qemu/qemu.ts";
import { continueMachines, type ContinuePlan } from "./continue-machines.ts";
import { savedFiles } from "./snapshot-files.ts";

const atOnce = 4;

/** Ends the machines, puts back their disks, and starts them from the saved memory. All continue at about the same moment. */
export async function restoreMachines(qemu: Qemu, plan: ContinuePlan, signal: AbortSignal): Promise<void> {
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

async function copyDisks({ cluster, folder, saved }: ContinuePlan, node: NodeFacts): Promise<void> {
  const machine = machineFiles(cluster.directory, node);
  const files = savedFiles(node);
  try {
    await copyFile(join(folder, files.disk), draft(machine.disk), constants.COPYFILE_FICLONE);
    if (saved.files[files.variables] === undefined) return;
    await copyFile(join(folder, files.variables), draft(machine.flash.variables), constants.COPYFILE_FICLONE);
  } catch (error) {
    if (errorCode(error) !== "ENOSPC") throw error;
    throw new ClusterError("capacity-lacking", `The disk is full: ${nodeReference(node)} cannot be restored.`, {
      hint: "Make room, or delete a snapshot. Nothing was stopped.",
      cause: error,
    });
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
