import { rm } from "node:fs/promises";
import { ClusterError, revised } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import { outside } from "../../../outside-text.ts";
import { creationFiles } from "../../../store/creation-folder.ts";
import type { Runtime, Work } from "../../../system/runtime.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import { type LaunchPlan, readOwnCluster } from "../machines/launch.ts";
import { type MachineLife, machineLife } from "../machines/machine-life.ts";
import { allProcessFiles, endMachines, machineFiles } from "../machines/machine-process.ts";
import { type BrokenAccelerator, rememberBrokenAccelerator } from "./broken-accelerator.ts";

/**
 * Returns the hardware accelerator of these machines if it made one of them stop or crash. Some
 * accelerators pass every trial but can't run what a boot loader or a kernel does later. Remembers
 * the accelerator, so that the next creation starts with another one.
 */
export async function findBrokenAccelerator(
  { directory, facts, accelerator }: Pick<LaunchPlan, "directory" | "facts" | "accelerator">,
  { environment }: Pick<Runtime, "environment">,
): Promise<BrokenAccelerator | undefined> {
  if (accelerator === "tcg") return undefined;
  const lives = await Promise.all(
    facts.nodes.map(async (node) => machineLife(machineFiles(directory, node))),
  );
  const reason = lives.map(acceleratorsFault).find((fault) => fault !== undefined);
  if (reason === undefined) return undefined;
  const broken = { accelerator, reason };
  await rememberBrokenAccelerator(environment, broken);
  return broken;
}

function acceleratorsFault(life: MachineLife): string | undefined {
  if (typeof life !== "object") return undefined;
  const { failure, said } = life;
  return failure === "internal-error" || failure === "crashed" ? (said ?? failure) : undefined;
}

/**
 * Ends the machines and removes everything that they wrote, so that they can be launched again.
 * Resolves with the current facts about them.
 */
export async function prepareRelaunch(work: Work, directory: string): Promise<LaunchPlan["facts"]> {
  await using _ = await lockMachines(work, directory);
  // The machines' ports may have changed since the plan was made.
  const { facts } = await readOwnCluster(directory);
  await endMachines(await allProcessFiles(directory), work.clock, work.signal);
  const folders = facts.nodes.map((node) => machineFiles(directory, node).folder);
  // A key that a machine received before it broke was lost with its disk.
  const paths = [...folders, creationFiles(directory).knownHosts];
  await Promise.all(paths.map(async (path) => rm(path, { recursive: true, force: true })));
  return facts;
}

export const fallBackNote = ({ accelerator, reason }: BrokenAccelerator): string =>
  `${accelerator} cannot run these machines (${outside(reason)}): restarting them under tcg, which takes minutes. ` +
  `Until this computer restarts, later creations use tcg too; see: cluster-vm doctor`;

/** Returns the failure of a creation that can't start again. */
export function brokenFailure(
  error: unknown,
  { accelerator }: BrokenAccelerator,
  isForced: boolean,
): unknown {
  if (!(error instanceof ClusterError) || error.id !== "machine-failed") return error;
  const hint = isForced
    ? `Omit ${optionName("accelerator")}, or pass ${optionName("accelerator", "tcg")}.`
    : `${accelerator} cannot run these machines. Create the cluster again: it will use tcg.`;
  return revised(error, { hint });
}
