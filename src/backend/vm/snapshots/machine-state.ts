import { open, rm, stat } from "node:fs/promises";
import { ClusterError } from "../../../errors.ts";
import { nodeReference } from "../../../model/cluster-record.ts";
import * as read from "../../../model/reader.ts";
import { outside } from "../../../outside-text.ts";
import { quote } from "../../../ssh/shell-text.ts";
import { isAccessible } from "../../../system/files/private-file.ts";
import { outsideReason } from "../../../system/printable.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { poll } from "../../../system/retry.ts";
import type { Clock } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import type { NodeFacts } from "../cluster-facts.ts";
import { type MachineFiles, isRunning, machineFiles } from "../machines/machine-process.ts";
import { queryRunState, runOnMonitor, statusOf } from "../qemu/monitor.ts";
import { qemuMessage } from "../qemu/qemu.ts";

/** QEMU would keep to 128 MB a second. */
const bytesPerSecond = 1e11;

/**
 * Applies to what a machine saves or continues from afterwards. What was saved can only be loaded
 * with the same setting.
 */
const ignoreShared = (state: boolean) => ({
  execute: "migrate-set-capabilities",
  arguments: { capabilities: [{ capability: "x-ignore-shared", state }] },
});

/** Writes a paused machine's state, but not its memory, which is a file that it shares. */
export async function saveState(
  {
    machine,
    path,
    clock,
  }: { readonly machine: string; readonly path: string; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const whole = `${path}.whole`;
  // QEMU doesn't look at the command's exit status.
  const command = `umask 077; ${quote(["cat"])} >${quote([path])} && : >${quote([whole])}`;
  await migrate({ from: machine, uri: `exec:${command}`, leavesShared: true, path, clock }, signal);
  const written = { bytes: 0 };
  const lookForEnd = async (): Promise<true | undefined> => {
    written.bytes = (await stat(path).catch(() => undefined))?.size ?? 0;
    return (await isAccessible(whole)) ? true : undefined;
  };
  const rule = { ...ruleOf(waits.memoryWritten, clock), seen: () => written.bytes };
  const isWhole = await poll(lookForEnd, rule, signal);
  if (isWhole === undefined) throw await saveFailure(path, undefined);
  await rm(whole);
}

interface Migration {
  readonly from: string;
  readonly uri: string;
  /** Whether memory that is a shared file stays there. */
  readonly leavesShared: boolean;
  /** The file that is written, for messages. */
  readonly path: string;
  readonly clock: Clock;
}

/** Resolves when QEMU has written everything. */
export async function migrate(
  { from, uri, leavesShared, path, clock }: Migration,
  signal: AbortSignal,
): Promise<void> {
  const commands = [
    ignoreShared(leavesShared),
    { execute: "migrate-set-parameters", arguments: { "max-bandwidth": bytesPerSecond } },
    { execute: "migrate", arguments: { uri } },
  ];
  await runOnMonitor(from, commands, signal);
  const written = { bytes: 0 };
  const look = async (): Promise<true | undefined> => {
    const [result] = await runOnMonitor(from, [{ execute: "query-migrate" }], signal);
    const status = statusOf(result);
    written.bytes = transferred(result) ?? 0;
    if (status === "completed") return true;
    if (status === "failed" || status === "cancelled") throw await saveFailure(path, result);
    return undefined;
  };
  const rule = { ...ruleOf(waits.memorySave, clock), seen: () => written.bytes };
  if ((await poll(look, rule, signal)) === undefined) throw stalled(path, written.bytes);
}

/** How many bytes QEMU has written; absent before it begins. */
const transferred = read.field("ram", read.field("transferred", read.number));

async function saveFailure(path: string, result: unknown): Promise<ClusterError> {
  const reason = read.field("error-desc", read.string)(result);
  const said = reason === undefined ? "" : `: ${outsideReason(reason)}`;
  const room = await roomBeside(path);
  return room === 0
    ? new ClusterError(
        "capacity-lacking",
        `The disk is full: the memory cannot be written to ${path}.`,
        {
          hint: "Free some space, or delete a snapshot.",
        },
      )
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

const stalled = (path: string, bytes: number): ClusterError =>
  new ClusterError(
    "deadline-passed",
    `QEMU has written nothing more of the memory to ${path} for ${waits.memorySave.limitMs / 60_000} min, after ${Math.round(bytes / 1e6)} MB.`,
    {
      hint: "Check whether this computer's disk is slow or full.",
    },
  );

interface StateOf {
  readonly directory: string;
  readonly node: NodeFacts;
  /** The file with the state that belongs to the machine's memory. */
  readonly state: string;
  readonly clock: Clock;
}

/** Gives a machine that waits for it the state to continue from. The machine is paused then. */
export async function loadState(
  { directory, node, state, clock }: StateOf,
  signal: AbortSignal,
): Promise<void> {
  const files = machineFiles(directory, node);
  const incoming = {
    execute: "migrate-incoming",
    arguments: { uri: `exec:${quote(["cat", state])}` },
  };
  await runOnMonitor(files.folder, [ignoreShared(true), incoming], signal).catch(
    async (error: unknown) => {
      signal.throwIfAborted();
      // Its log says why it has ended.
      if (await isRunning(files)) throw error;
    },
  );
  const name = nodeReference(node);
  const failure = (id: "engine-failed" | "deadline-passed", why: string): ClusterError =>
    new ClusterError(id, `QEMU cannot continue ${name} from its memory: ${why}.`, {
      hint: "Restore another snapshot, or create the cluster again.",
    });
  await awaitLoaded({ files, clock, failure }, signal);
}

interface Loading {
  readonly files: MachineFiles;
  readonly clock: Clock;
  readonly failure: (id: "engine-failed" | "deadline-passed", why: string) => ClusterError;
}

/** Resolves when QEMU has loaded a machine's state. */
export async function awaitLoaded(
  { files, clock, failure }: Loading,
  signal: AbortSignal,
): Promise<void> {
  const look = async (): Promise<true | undefined> => {
    const state = await queryRunState(files.folder);
    if (state === "paused" || state === "postmigrate") return true;
    if (state !== undefined || (await isRunning(files))) return undefined;
    const said = qemuMessage(await readOwnText(files.qemuLog).catch(() => ""), 2) ?? "it ended";
    throw failure("engine-failed", outside(said));
  };
  if ((await poll(look, ruleOf(waits.memoryLoad, clock), signal)) !== undefined) return;
  throw failure("deadline-passed", "it did not load its state in time");
}
