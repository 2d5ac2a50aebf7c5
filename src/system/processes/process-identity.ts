import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";
import { promisify } from "node:util";
import { systemEnvironment } from "./child-environment.ts";
import { isMapping } from "../is-mapping.ts";

/** Tells one process from every other, also from a later one with the same number. */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** When it started, in a form that only has to be compared. */
  readonly startedAt: string;
}

/** What a lock or a creation's file holds; undefined where it has another shape. */
export function parseProcessIdentity(found: unknown): ProcessIdentity | undefined {
  if (!isMapping(found)) return undefined;
  const { host, pid, startedAt } = found;
  if (typeof host !== "string" || typeof startedAt !== "string" || !Number.isSafeInteger(pid)) return undefined;
  return Number(pid) > 0 ? { host, pid: Number(pid), startedAt } : undefined;
}

/** The process that this program runs in. `undefined` where the system doesn't tell. */
export async function identifyThisProcess(): Promise<ProcessIdentity | undefined> {
  const pid = (await ownPidFromProc()) ?? (await ownPidFromShell());
  return pid === undefined ? undefined : await identifyProcess(pid);
}

async function identifyProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const startedAt = (await startFromProc(pid)) ?? (await startFromPs(pid));
  return startedAt === undefined ? undefined : { host: hostname(), pid, startedAt };
}

/**
 * Whether that very process still runs. One of another host counts as running, since nobody can tell: a state folder may lie on a shared
 * disk, and containers that share one have process numbers of their own.
 */
export async function isProcessAlive(identity: ProcessIdentity): Promise<boolean> {
  if (identity.host !== hostname()) return true;
  return (await identifyProcess(identity.pid))?.startedAt === identity.startedAt;
}

/** Linux: clock ticks from boot to the process's start, with the boot they are counted from. */
async function startFromProc(pid: number): Promise<string | undefined> {
  try {
    const [status, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, "utf8"),
      readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    ]);
    // The second field is the program's name in brackets, which may itself hold spaces and brackets.
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
