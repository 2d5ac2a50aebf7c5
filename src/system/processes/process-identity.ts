import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { readlink, rename, rm, symlink } from "node:fs/promises";
import { hostname } from "node:os";
import { promisify } from "node:util";
import { ClusterError } from "../../errors.ts";
import * as read from "../../model/reader.ts";
import { errorCode } from "../files/private-file.ts";
import { readOwnText } from "../files/read-text.ts";
import { poll } from "../retry.ts";
import type { Clock, Environment } from "../runtime.ts";
import { waits } from "../waits.ts";
import { systemEnvironment } from "./run-program.ts";

/** Distinguishes one process from every other, including a later one with the same number. Stands in locks and creations' files. */
export const parseProcessIdentity = read.object({
  host: read.string,
  pid: read.positiveInteger,
  /** When the process started, in a form that is only compared. */
  startedAt: read.string,
});

export type ProcessIdentity = read.ValueOf<typeof parseProcessIdentity>;

/** The process that this program runs in. `undefined` if the system doesn't report it. */
export async function identifyThisProcess(): Promise<ProcessIdentity | undefined> {
  const pid = await ownPid();
  return pid === undefined ? undefined : await identifyProcess(pid);
}

async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const startedAt = (await startFromProc(pid)) ?? (await startFromPs(pid));
  return startedAt === undefined ? undefined : { host: hostname(), pid, startedAt };
}

/**
 * Whether that very process is still running. A process of another host counts as running, because it can't be checked: hosts and containers may
 * share a state folder.
 */
export async function isProcessAlive(identity: ProcessIdentity): Promise<boolean> {
  if (identity.host !== hostname()) return true;
  return (await identifyProcess(identity.pid))?.startedAt === identity.startedAt;
}

/** Linux: clock ticks from boot to the process's start, and the id of that boot. */
async function startFromProc(pid: number): Promise<string | undefined> {
  try {
    const [status, boot] = await Promise.all([
      readOwnText(`/proc/${pid}/stat`),
      readOwnText("/proc/sys/kernel/random/boot_id"),
    ]);
    // The second field is the program's name in brackets, which may itself contain spaces and brackets.
    const fields = status.slice(status.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : `${boot.trim()}:${fields[19]}`;
  } catch {
    return undefined;
  }
}

/** macOS has no /proc. */
const startFromPs = (pid: number): Promise<string | undefined> =>
  outputOf("ps", ["-o", "lstart=", "-p", String(pid)], { TZ: "UTC" });

async function ownPid(): Promise<number | undefined> {
  const pid = await readlink("/proc/self").catch(() => outputOf("/bin/sh", ["-c", "echo $PPID"]));
  return pid === undefined ? undefined : Number(pid);
}

async function outputOf(
  program: string,
  words: readonly string[],
  variables: Environment = {},
): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(program, words, { env: { ...systemEnvironment, ...variables } });
    return stdout.trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Returns a text that differs after each start of this computer; undefined if the system doesn't report it. */
export async function readBootId(): Promise<string | undefined> {
  try {
    return (await readOwnText("/proc/sys/kernel/random/boot_id")).trim();
  } catch {
    // macOS has no /proc.
    return await outputOf("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"]);
  }
}

export async function commandOfProcess(pid: number): Promise<string | undefined> {
  try {
    const words = await readOwnText(`/proc/${pid}/cmdline`);
    // A process that has ended but has not been reaped has none.
    return words === "" ? undefined : words.replaceAll("\0", " ").trim();
  } catch {
    return await outputOf("ps", ["-ww", "-o", "command=", "-p", String(pid)]);
  }
}

/** Uses the shell's built-in `kill`, which every machine has. Ignores processes that no longer exist. */
export async function signalProcess(pid: number, name: "TERM" | "KILL"): Promise<void> {
  const script = 'kill -"$1" "$2" 2>/dev/null || :';
  await promisify(execFile)("/bin/sh", ["-c", script, "sh", name, String(pid)], { env: systemEnvironment });
}

interface Waiting {
  readonly clock: Clock;
  /**
   * Called once, if it has to wait. `advice` follows a sentence: it names the lock if the holder is on another computer, where nobody can see whether
   * it has been killed; otherwise it is empty.
   */
  readonly onWait: (advice: string) => void;
  /** If another process still holds the lock at that time, `error` is thrown. Absent: wait without limit. */
  readonly giveUp?: { readonly atMs: number; readonly error: Error };
}

/**
 * Holds a lock at `path`, whose folder exists, until the result is disposed of. Waits while another living process holds it. A killed process loses its
 * locks. Throws the system's error if the lock can't be created or read, such as one of another user. The lock is a symbolic link to nowhere, so short
 * that it needs no block of the disk: also on a full disk, commands can free space.
 */
export async function acquireProcessLock(
  path: string,
  { clock, onWait, giveUp }: Waiting,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  const text = lockText(await identifyThisProcess());
  let hasReported = false;
  const look = async (): Promise<true | undefined> => {
    const holder = await takeFreed(path, text, signal);
    if (holder === undefined) return true;
    if (!hasReported) onWait(isElsewhere(holder) ? elsewhereAdvice(path) : "");
    hasReported = true;
    return undefined;
  };
  const rule = { ...waits.processLock, clock };
  if (giveUp === undefined) await poll(look, rule, signal);
  else if ((await poll(look, { ...rule, deadlineMs: giveUp.atMs }, signal)) === undefined) throw giveUp.error;
  return {
    [Symbol.asyncDispose]: async () => {
      if ((await readlink(path).catch(() => "")) === text) await rm(path, { force: true });
    },
  };
}

const elsewhereAdvice = (path: string): string =>
  ` That process runs on another computer, or in another container. If it has ended, remove ${path}.`;

/** Takes the lock unless a living process holds it. Resolves with that holder, if there is one. */
async function takeFreed(path: string, text: string, signal: AbortSignal): Promise<string | undefined> {
  while (!(await take(path, text))) {
    signal.throwIfAborted();
    const holder = await readHolder(path);
    if (holder === undefined) continue;
    if (await isHeld(holder)) return holder;
    await breakLock(path, holder);
  }
  return undefined;
}

/** Creating a link is atomic, so nobody sees a lock without its holder. */
async function take(path: string, text: string): Promise<boolean> {
  try {
    await symlink(text, path);
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  }
}

async function readHolder(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    if (errorCode(error) === "EINVAL") throw notALock(path);
    throw error;
  }
}

/** Builds of before the first release had regular files as locks. */
const notALock = (path: string): ClusterError =>
  new ClusterError("machine-not-set-up", `${path} is in the way of a lock.`, { hint: "Remove it." });

/** File systems keep links of up to 59 bytes beside the name. */
const lockText = (holder: ProcessIdentity | undefined): string =>
  [...(holder === undefined ? [] : holderWords(holder)), randomUUID().slice(-12)].join(":");

const holderWords = ({ host, pid, startedAt }: ProcessIdentity): readonly string[] => [
  digest(host).slice(0, 8),
  String(pid),
  digest(startedAt).slice(0, 16),
];

const digest = (text: string): string => createHash("sha256").update(text).digest("hex");

const wordsIn = (text: string): readonly (string | undefined)[] =>
  /^([0-9a-f]{8}):([1-9][0-9]{0,9}):([0-9a-f]{16}):/.exec(text)?.slice(1) ?? [];

function isElsewhere(text: string): boolean {
  const [host] = wordsIn(text);
  return host !== undefined && host !== digest(hostname()).slice(0, 8);
}

/** Like `isProcessAlive`. */
async function isHeld(text: string): Promise<boolean> {
  if (isElsewhere(text)) return true;
  const [, pid, start] = wordsIn(text);
  const now = pid === undefined ? undefined : await identifyProcess(Number(pid));
  return now !== undefined && holderWords(now)[2] === start;
}

/** If several processes find the holder dead, one moves the lock away. A process that moved a new lock away gives it back. */
async function breakLock(path: string, holder: string): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
    const moved = await readlink(aside);
    if (moved !== holder) await symlink(moved, path);
  } catch (error) {
    const code = errorCode(error);
    if (code !== "ENOENT" && code !== "EEXIST") throw error;
  } finally {
    await rm(aside, { force: true });
  }
}
