import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import { readdir, readlink, rename, rm, stat, symlink } from "node:fs/promises";
import { hostname, platform } from "node:os";
import { promisify } from "node:util";
import { ClusterError } from "../../errors.ts";
import * as read from "../../model/reader.ts";
import { errorCode } from "../files/private-file.ts";
import { readOwnText } from "../files/read-text.ts";
import { poll } from "../retry.ts";
import type { Clock, Environment } from "../runtime.ts";
import { waits } from "../waits.ts";
import { systemEnvironment } from "./run-program.ts";

const spaceFields = {
  host: read.string,
  /** Linux: the id of the computer. It is missing in many containers. */
  computer: read.optional(read.string),
  /** Linux: the id of the computer's start. */
  boot: read.optional(read.string),
  /** Linux: the namespace of the process's number; each container has its own. */
  namespace: read.optional(read.string),
};

/** Where the numbers of processes mean the same processes. */
export const parseProcessSpace = read.object(spaceFields);

type ProcessSpace = read.ValueOf<typeof parseProcessSpace>;

/**
 * Distinguishes one process from every other, including a later one with the same number. Stands in
 * locks and creations' files.
 */
export const parseProcessIdentity = read.object({
  ...spaceFields,
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
  return startedAt === undefined ? undefined : { ...(await readProcessSpace()), pid, startedAt };
}

/**
 * Whether that very process is still running. A process of another computer or container counts as
 * running, because it can't be checked: they may share a state folder. So does one that may have
 * the number of a process that is hidden from this user.
 */
export async function isProcessAlive(identity: ProcessIdentity): Promise<boolean> {
  const fate = fateOf(identity, await readProcessSpace());
  if (fate !== "here") return fate === "elsewhere";
  const now = await identifyProcess(identity.pid);
  return now === undefined ? isForeign(identity.pid) : now.startedAt === identity.startedAt;
}

/**
 * Whether a process has this number and this user may not signal it, also where `/proc` hides the
 * processes of others (`hidepid`).
 */
async function isForeign(pid: number): Promise<boolean> {
  const script = 'kill -0 "$1" 2>&1 || :';
  const said = await outputOf("/bin/sh", ["-c", script, "sh", String(pid)]);
  return /not permitted/i.test(said ?? "");
}

/** The space of this program. Other systems than Linux have only one on each computer. */
export async function readProcessSpace(): Promise<ProcessSpace> {
  const own = { host: hostname() };
  const namespace = await readlink("/proc/self/ns/pid").catch(() => undefined);
  if (namespace === undefined) return own;
  const [computer, boot] = await Promise.all([
    readOwnText("/etc/machine-id").catch(() => ""),
    readOwnText("/proc/sys/kernel/random/boot_id").catch(() => ""),
  ]);
  const known = { ...own, boot: boot.trim(), namespace };
  return computer.trim() === "" ? known : { ...known, computer: computer.trim() };
}

/**
 * `ended`: its computer has been restarted since, which ended all its processes. `elsewhere`:
 * nothing here shows whether they run. A computer may get another name while it runs, such as from
 * DHCP, but not another id of its start.
 */
export function fateOf(space: ProcessSpace, here: ProcessSpace): "here" | "ended" | "elsewhere" {
  const isSameStart = (space.boot ?? "") !== "" && space.boot === here.boot;
  const isNamedSo = space.host === here.host && space.computer === here.computer;
  if (!isSameStart && !isNamedSo) return "elsewhere";
  if (space.boot !== here.boot) return space.computer === undefined ? "elsewhere" : "ended";
  return space.namespace === here.namespace ? "here" : "elsewhere";
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
    return fields[0] === "Z" ? "ended" : `${boot.trim()}:${fields[19]}`;
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
    const { stdout } = await promisify(execFile)(program, words, {
      env: { ...systemEnvironment, ...variables },
    });
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

/**
 * Whether this process holds a lock on the file at this path, by the word of the kernel: no command
 * line and no name proves it, and the file may have been moved since. `hidden`: the process is
 * another user's, and nothing shows what it holds. macOS has no `/proc`, and its `lsof` tells only
 * whether the process has the file open.
 */
export async function holdsFile(pid: number, path: string): Promise<boolean | "hidden"> {
  const file = await stat(path).catch(() => undefined);
  if (file === undefined) return false;
  if (platform() === "darwin") return hasOpenOnMac(pid, file);
  const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => undefined);
  if (descriptors === undefined) return holdsFileOfAnother(pid, file);
  for (const descriptor of descriptors) {
    const opened = await stat(`/proc/${pid}/fd/${descriptor}`).catch(errorCode);
    if (opened === "EACCES" || opened === "EPERM") return holdsFileOfAnother(pid, file);
    if (typeof opened !== "object" || opened.dev !== file.dev || opened.ino !== file.ino) continue;
    const information = await readOwnText(`/proc/${pid}/fdinfo/${descriptor}`).catch(() => "");
    if (/^lock:/m.test(information)) return true;
  }
  return false;
}

/**
 * What can be known of a process whose descriptors this user can't read. All locks are listed for
 * everybody, but the list names some file systems otherwise than `stat` does: it proves no absence.
 * A process of another user than the file's owner has not locked it.
 */
async function holdsFileOfAnother(pid: number, file: Stats): Promise<boolean | "hidden"> {
  const locks = await readOwnText("/proc/locks").catch(() => "");
  if (new RegExp(` ${pid} [0-9a-f]+:[0-9a-f]+:${file.ino} `).test(locks)) return true;
  const status = await readOwnText(`/proc/${pid}/status`).catch(() => "");
  const [, user = String(file.uid)] = /^Uid:\t\d+\t(\d+)/m.exec(status) ?? [];
  if (Number(user) !== file.uid) return false;
  return (await isForeign(pid)) ? "hidden" : false;
}

/**
 * https://lsof.readthedocs.io: a line each for the number of a descriptor (`f`), and its file's
 * device (`D`) and inode (`i`).
 */
async function hasOpenOnMac(pid: number, { dev, ino }: Stats): Promise<boolean> {
  const output = (await outputOf("/usr/sbin/lsof", ["-a", "-p", String(pid), "-F", "fDi"])) ?? "";
  return output.split(/^f/m).some((file) => {
    const [, device] = /^D0x([0-9a-f]+)$/m.exec(file) ?? [];
    return (
      device !== undefined &&
      Number.parseInt(device, 16) === dev &&
      new RegExp(`^i${ino}$`, "m").test(file)
    );
  });
}

/** Uses the shell's built-in `kill`, which every machine has. Ignores processes that no longer exist. */
export async function signalProcess(pid: number, name: "TERM" | "KILL"): Promise<void> {
  const script = 'kill -"$1" "$2" 2>/dev/null || :';
  await promisify(execFile)("/bin/sh", ["-c", script, "sh", name, String(pid)], {
    env: systemEnvironment,
  });
}

interface Waiting {
  readonly clock: Clock;
  /**
   * Called once, if it has to wait. `advice` follows a sentence: it names the lock if the holder is
   * on another computer, where nobody can see whether it has been killed; otherwise it is empty.
   */
  readonly onWait: (advice: string) => void;
  /** If another process still holds the lock at that time, `error` is thrown. Absent: wait without limit. */
  readonly giveUp?: { readonly atMs: number; readonly error: Error };
}

/**
 * Holds a lock at `path`, whose folder exists, until the result is disposed of. Waits while another
 * living process holds it. A killed process loses its locks. Throws the system's error if the lock
 * can't be created or read, such as one of another user. The lock is a symbolic link to nowhere, so
 * short that it needs no block of the disk: also on a full disk, commands can free space.
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
    if (!hasReported) onWait(adviceOn(path, await isHeld(holder)));
    hasReported = true;
    return undefined;
  };
  const rule = { ...waits.processLock, clock };
  if (giveUp === undefined) await poll(look, rule, signal);
  else if ((await poll(look, { ...rule, deadlineMs: giveUp.atMs }, signal)) === undefined)
    throw giveUp.error;
  return {
    [Symbol.asyncDispose]: async () => {
      if ((await readlink(path).catch(() => "")) === text) await rm(path, { force: true });
    },
  };
}

const unseen: Readonly<Record<string, string>> = {
  elsewhere: "runs on another computer, or in another container",
  hidden: "is another user's",
};

const adviceOn = (path: string, held: Awaited<ReturnType<typeof isHeld>>): string => {
  const where = unseen[String(held)];
  return where === undefined ? "" : ` That process ${where}. If it has ended, remove ${path}.`;
};

/** Takes the lock unless a living process holds it. Resolves with that holder, if there is one. */
async function takeFreed(
  path: string,
  text: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  while (!(await take(path, text))) {
    signal.throwIfAborted();
    const holder = await readHolder(path);
    if (holder === undefined) continue;
    if ((await isHeld(holder)) !== false) return holder;
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
  new ClusterError("machine-not-set-up", `${path} is in the way of a lock.`, {
    hint: "Remove it.",
  });

/** File systems keep links of up to 59 bytes beside the name. */
const lockText = (holder: ProcessIdentity | undefined): string =>
  [...(holder === undefined ? [] : holderWords(holder)), randomUUID().slice(-8)].join(":");

/** The space's three words, the number and the start. */
const holderWords = (holder: ProcessIdentity): readonly string[] => [
  ...Object.values(shortSpace(holder)),
  String(holder.pid),
  digest(holder.startedAt).slice(0, 8),
];

/** Without an id of the computer, its start is a part of it, so that another start counts as another computer. */
const shortSpace = ({ host, computer, boot, namespace }: ProcessSpace) => ({
  computer: digest(`${host}:${computer ?? boot ?? ""}`).slice(0, 8),
  boot: digest(boot ?? "").slice(0, 8),
  namespace: digest(namespace ?? "").slice(0, 8),
});

const digest = (text: string): string => createHash("sha256").update(text).digest("hex");

const parseHolder =
  /^(?<computer>[0-9a-f]{8}):(?<boot>[0-9a-f]{8}):(?<namespace>[0-9a-f]{8}):(?<pid>[1-9][0-9]{0,9}):(?<start>[0-9a-f]{8}):/;

/**
 * A lock without an identity is one of a process that the system didn't report, or of a program
 * that writes others: nothing shows whether it runs.
 */
async function fateOfHolder(text: string): Promise<ReturnType<typeof fateOf>> {
  const { computer = "", boot, namespace } = parseHolder.exec(text)?.groups ?? {};
  const here = shortSpace(await readProcessSpace());
  return fateOf(
    { host: computer, computer, boot: knownBoot(boot), namespace },
    { ...here, host: here.computer, boot: knownBoot(here.boot) },
  );
}

/** Systems that report no start write the same word for each. */
const knownBoot = (word: string | undefined): string | undefined =>
  word === digest("").slice(0, 8) ? undefined : word;

/** Like `isProcessAlive`; it tells why nothing shows whether the process runs. */
async function isHeld(text: string): Promise<boolean | "elsewhere" | "hidden"> {
  const fate = await fateOfHolder(text);
  if (fate !== "here") return fate === "elsewhere" && fate;
  const { pid, start } = parseHolder.exec(text)?.groups ?? {};
  const now = await identifyProcess(Number(pid));
  if (now === undefined) return (await isForeign(Number(pid))) && "hidden";
  return holderWords(now).at(-1) === start;
}

/**
 * If several processes find the holder dead, one moves the lock away. A process that moved a new
 * lock away gives it back.
 */
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
