import { constants, copyFile, mkdir, open, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import * as read from "../../../model/reader.ts";
import { quote } from "../../../ssh/shell-text.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { sha256OfFile } from "../../../system/files/byte-source.ts";
import { isAccessible } from "../../../system/files/private-file.ts";
import { outsideReason } from "../../../system/printable.ts";
import { poll } from "../../../system/retry.ts";
import type { Clock } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import type { NodeFacts } from "../cluster-facts.ts";
import { machineFiles } from "../machines/machine-process.ts";
import { runOnMonitor, statusOf } from "../qemu/monitor.ts";
import { type FileFacts, copyFailure, savedFiles } from "./snapshot-files.ts";

const atOnce = 4;
/** QEMU would keep to 128 MB a second. */
const bytesPerSecond = 1e11;

/** Applies to what a machine saves or continues from afterwards. What was saved can only be loaded with the same setting. */
export const ignoreShared = (state: boolean) => ({
  execute: "migrate-set-capabilities",
  arguments: { capabilities: [{ capability: "x-ignore-shared", state }] },
});

export interface SavePlan {
  readonly directory: string;
  readonly nodes: readonly NodeFacts[];
  /** The folder to save to. */
  readonly folder: string;
  readonly clock: Clock;
}

/** Saves memory and disks of paused machines. */
export async function saveMachines(plan: SavePlan, signal: AbortSignal): Promise<void> {
  await mapConcurrently(plan.nodes, atOnce, async (node) => saveMachine(plan, node, signal), signal);
}

/** Returns facts about what was saved, which is then also safe from a crash of this computer. */
export async function describeFiles(
  { folder, nodes }: Pick<SavePlan, "folder" | "nodes">,
  signal: AbortSignal,
): Promise<Readonly<Record<string, FileFacts>>> {
  const paths = nodes.flatMap((node) => Object.values(savedFiles(node)));
  const entries = await mapConcurrently(paths, atOnce, async (path) => describeFile(folder, path, signal), signal);
  return Object.fromEntries(entries.filter((entry) => entry !== undefined));
}

/** The memory goes first: QEMU then hands over its disks, with everything written that it had in its caches. */
async function saveMachine(
  { directory, folder, clock }: SavePlan,
  node: NodeFacts,
  signal: AbortSignal,
): Promise<void> {
  const machine = machineFiles(directory, node);
  const saved = savedFiles(node);
  await mkdir(join(folder, dirname(saved.memory)), { recursive: true, mode: 0o700 });
  try {
    await saveMemory({ machine: machine.folder, path: join(folder, saved.memory), clock, leavesShared: false }, signal);
    await copyFile(machine.disk, join(folder, saved.disk), constants.COPYFILE_FICLONE);
    if (await isAccessible(machine.flash.variables)) {
      await copyFile(machine.flash.variables, join(folder, saved.variables), constants.COPYFILE_FICLONE);
    }
  } catch (error) {
    throw copyFailure(error, node, "saved");
  }
}

/** With `leavesShared`, memory that is a shared file stays there, and only the rest of the machine's state is written. */
export async function saveMemory(
  {
    machine,
    path,
    clock,
    leavesShared,
  }: { readonly machine: string; readonly path: string; readonly clock: Clock; readonly leavesShared: boolean },
  signal: AbortSignal,
): Promise<void> {
  const whole = `${path}.whole`;
  // QEMU doesn't look at the command's exit status.
  const command = `umask 077; ${quote(["cat"])} >${quote([path])} && : >${quote([whole])}`;
  const commands = [
    ignoreShared(leavesShared),
    { execute: "migrate-set-parameters", arguments: { "max-bandwidth": bytesPerSecond } },
    { execute: "migrate", arguments: { uri: `exec:${command}` } },
  ];
  await runOnMonitor(machine, commands, signal);
  const look = async (): Promise<true | undefined> => {
    const [result] = await runOnMonitor(machine, [{ execute: "query-migrate" }], signal);
    const status = statusOf(result);
    if (status === "completed") return true;
    if (status === "failed" || status === "cancelled") throw await saveFailure(path, result);
    return undefined;
  };
  if ((await poll(look, ruleOf(waits.memorySave, clock), signal)) === undefined) throw tooSlow(path);
  const lookForEnd = async (): Promise<true | undefined> => ((await isAccessible(whole)) ? true : undefined);
  const isWhole = await poll(lookForEnd, ruleOf(waits.memoryWritten, clock), signal);
  if (isWhole === undefined) throw await saveFailure(path, undefined);
}

async function saveFailure(path: string, result: unknown): Promise<ClusterError> {
  const reason = read.field("error-desc", read.string)(result);
  const said = reason === undefined ? "" : `: ${outsideReason(reason)}`;
  const room = await roomBeside(path);
  return room === 0
    ? new ClusterError("capacity-lacking", `The disk is full: the memory cannot be written to ${path}.`, {
        hint: "Make room, or delete a snapshot.",
      })
    : new ClusterError("engine-failed", `QEMU could not write the memory to ${path}${said}.`);
}

/** Whether even a small file can't be written. Free space alone doesn't tell, because of quotas and limits. */
async function roomBeside(path: string): Promise<number> {
  const probe = `${path}.room`;
  try {
    const file = await open(probe, "w", 0o600);
    try {
      await file.writeFile(new Uint8Array(1_000_000));
      await file.sync();
    } finally {
      await file.close();
    }
    return (await stat(probe)).size;
  } catch {
    return 0;
  }
}

const tooSlow = (path: string): ClusterError =>
  new ClusterError(
    "deadline-passed",
    `Writing the memory to ${path} took longer than ${waits.memorySave.limitMs / 60_000} min.`,
    {
      hint: "See whether this machine's disk is slow, or full.",
    },
  );

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
  return [path, { bytes: (await stat(whole)).size, sha256: await sha256OfFile(whole, signal) }];
}
