import { ClusterError } from "../../errors.ts";
import { acquireProcessLock } from "../../system/processes/process-identity.ts";
import type { Clock, Work } from "../../system/runtime.ts";

const lockOf = (directory: string): string => `${directory}.lock`;

/** Starting many machines takes time. A lock that was left behind under another host name seems to be held for ever. */
const graceMs = 5 * 60_000;

/**
 * Holds a lock while a cluster's machines are started, saved, restored or removed. Otherwise one process could remove
 * them while another starts them, and a machine that was started in a folder that is being removed would keep running
 * unnoticed. The lock is beside the cluster's folder, since the folder may be removed as well.
 */
export async function lockMachines(
  { clock, progress, signal }: Work,
  directory: string,
): Promise<AsyncDisposable> {
  const path = lockOf(directory);
  const error = new ClusterError(
    "deadline-passed",
    "Another process is still working on this cluster's machines.",
    {
      hint: `Try again when it has finished. If no such process exists, on this computer or another, remove ${path}.`,
      facts: { lock: path },
    },
  );
  const giveUp = { atMs: clock.now() + graceMs, error };
  const onWait = (): void => progress.note("Waiting for other work on this cluster's machines.");
  return acquireProcessLock(path, { clock, onWait, giveUp }, signal);
}

/** Holds the same lock, but resolves with `undefined` at once if another process holds it. */
export const lockIdleMachines = async (
  directory: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<AsyncDisposable | undefined> => acquireIdleLock(lockOf(directory), clock, signal);

/** Holds the lock at this path, or resolves with `undefined` at once if another process holds it. */
export async function acquireIdleLock(
  path: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<AsyncDisposable | undefined> {
  const held = new Error("Another process holds the lock");
  const giveUp = { atMs: clock.now(), error: held };
  return acquireProcessLock(path, { clock, onWait: () => {}, giveUp }, signal).catch(
    (error: unknown) => {
      if (error === held) return undefined;
      throw error;
    },
  );
}
