import { execFile } from "node:child_process";
import { readlink } from "node:fs/promises";
import { hostname } from "node:os";
import { promisify } from "node:util";
import { systemEnvironment } from "./child-environment.ts";
import { isMapping } from "../is-mapping.ts";
import { readOwnText } from "../files/read-text.ts";

/** Distinguishes one process from every other, including a later one with the same number. */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** When the process started, in a form that is only compared. */
  readonly startedAt: string;
}

/** Parses the identity in a lock or a creation's file; undefined if it has another shape. */
export function parseProcessIdentity(found: unknown): ProcessIdentity | undefined {
  if (!isMapping(found)) return undefined;
  const { host, pid, startedAt } = found;
  if (typeof host !== "string" || typeof startedAt !== "string" || !Number.isSafeInteger(pid)) return undefined;
  return Number(pid) > 0 ? { host, pid: Number(pid), startedAt } : undefined;
}

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
