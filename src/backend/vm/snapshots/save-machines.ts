import { constants, copyFile, open } from "node:fs/promises";
import { join } from "node:path";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { isAccessible } from "../../../system/files/private-file.ts";
import type { NodeFacts } from "../cluster-facts.ts";
import { machineFiles } from "../machines/machine-process.ts";
import { type Saving, receive } from "./receivers.ts";
import { type FileFacts, copyFailure, describeContents, savedFiles } from "./snapshot-files.ts";

const atOnce = 4;
/** Saves memory and disks of paused machines, except for the states that `saveStates` saves. */
export async function saveMachines(saving: Saving, signal: AbortSignal): Promise<void> {
  const save = async (node: NodeFacts): Promise<void> => saveMachine(saving, node, signal);
  await mapConcurrently(saving.stored.facts.nodes, atOnce, save, signal);
}

/** Returns facts about what was saved, which is then also safe from a crash of this computer. */
export async function describeFiles(
  { folder, nodes }: { readonly folder: string; readonly nodes: readonly NodeFacts[] },
  signal: AbortSignal,
): Promise<Readonly<Record<string, FileFacts>>> {
  const paths = nodes.flatMap((node) => Object.values(savedFiles(node)));
  const entries = await mapConcurrently(
    paths,
    atOnce,
    async (path) => describeFile(folder, path, signal),
    signal,
  );
  return Object.fromEntries(entries.filter((entry) => entry !== undefined));
}

/** The memory goes first: QEMU then hands over its disks, with everything written that it had in its caches. */
async function saveMachine(saving: Saving, node: NodeFacts, signal: AbortSignal): Promise<void> {
  const { stored, folder } = saving;
  const machine = machineFiles(stored.directory, node);
  const saved = savedFiles(node);
  try {
    await receive(saving, node, signal);
    await copyFile(machine.disk, join(folder, saved.disk), constants.COPYFILE_FICLONE);
    if (await isAccessible(machine.flash.variables)) {
      await copyFile(
        machine.flash.variables,
        join(folder, saved.variables),
        constants.COPYFILE_FICLONE,
      );
    }
  } catch (error) {
    throw copyFailure(error, node, "saved");
  }
}

async function describeFile(
  folder: string,
  path: string,
  signal: AbortSignal,
): Promise<readonly [string, FileFacts] | undefined> {
  const whole = join(folder, path);
  if (!(await isAccessible(whole))) return undefined;
  const file = await open(whole, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  return [path, await describeContents(whole, signal)];
}
