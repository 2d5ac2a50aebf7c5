import { execFile } from "node:child_process";
import { readlink } from "node:fs/promises";
import { hostname } from "node:os";
import { promisify } from "node:util";
import * as read from "../../model/reader.ts";
import { readOwnText } from "../files/read-text.ts";
import { systemEnvironment } from "./run-program.ts";

/** Distinguishes one process from every other, including a later one with the same number. */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** When the process started, in a form that is only compared. */
  readonly startedAt: string;
}

/** Parses the identity in a lock or a creation's file; undefined if it has another shape. */
export const parseProcessIdentity: read.Reader<ProcessIdentity> = read.object({
  host: read.string,
  pid: read.positiveInteger,
  startedAt: read.string,
});

/** The process that this program runs in. `undefined` if the system doesn't report it. */
export async function identifyThisProcess(): Promise<ProcessIdentity | undefined> {
  const pid = (await ownPidFromProc()) ?? (await ownPidFromShell());
  return pid === undefined ? undefined : await identifyProcess(pid);
}

async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const startedAt = (await startFromProc(pid)) ?? (await startFromPs(pid));
  return startedAt === undefined ? undefined : { host: hostname(), pid, startedAt };
}

/**
 * Whether that very process is still running. A process of another host counts as running, because it can't be checked: a state folder may be on a
 * shared disk, and containers that share one have their own process numbers.
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
async function startFromPs(pid: number): Promise<string | undefined> {
  try {
    const environment = { ...systemEnvironment, TZ: "UTC" };
    const { stdout } = await promisify(execFile)("ps", ["-o", "lstart=", "-p", String(pid)], { env: environment });
    return stdout.trim() === "" ? undefined : stdout.trim();
  } catch {
    return undefined;
  }
}

async function ownPidFromProc(): Promise<number | undefined> {
  return await readlink("/proc/self").then(Number, () => undefined);
}

async function ownPidFromShell(): Promise<number | undefined> {
  return await promisify(execFile)("/bin/sh", ["-c", "echo $PPID"], { env: systemEnvironment }).then(
    ({ stdout }) => Number(stdout),
    () => undefined,
  );
}

/** A text that differs after each start of this computer. `undefined` if the system doesn't report it. */
export async function readBootId(): Promise<string | undefined> {
  try {
    return (await readOwnText("/proc/sys/kernel/random/boot_id")).trim();
  } catch {
    return await bootIdOfMac();
  }
}

async function bootIdOfMac(): Promise<string | undefined> {
  return await promisify(execFile)("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"], { env: systemEnvironment }).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
}

/** The command line of a running process, its words joined by spaces. `undefined`: there is no such process. */
export async function commandOfProcess(pid: number): Promise<string | undefined> {
  try {
    const words = await readOwnText(`/proc/${pid}/cmdline`);
    // A process that has ended but has not been reaped has none.
    return words === "" ? undefined : words.replaceAll("\0", " ").trim();
  } catch {
    return await commandFromPs(pid);
  }
}

/** macOS has no /proc. */
async function commandFromPs(pid: number): Promise<string | undefined> {
  return await promisify(execFile)("ps", ["-ww", "-o", "command=", "-p", String(pid)], {
    env: systemEnvironment,
  }).then(
    ({ stdout }) => (stdout.trim() === "" ? undefined : stdout.trim()),
    () => undefined,
  );
}

/** Uses the shell's built-in `kill`, which every machine has. It doesn't matter whether the process still existed. */
export async function signalProcess(pid: number, name: "TERM" | "KILL"): Promise<void> {
  const script = 'kill -"$1" "$2" 2>/dev/null || :';
  await promisify(execFile)("/bin/sh", ["-c", script, "sh", name, String(pid)], { env: systemEnvironment });
}
