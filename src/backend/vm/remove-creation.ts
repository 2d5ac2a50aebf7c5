import { rm } from "node:fs/promises";
import { ClusterError } from "../../errors.ts";
import type { Clock } from "../../system/clock.ts";
import { acquireProcessLock } from "../../system/processes/process-lock.ts";
import { removeClusterFacts } from "./cluster-facts.ts";
import { allProcessFiles, machinesFolder } from "./machines/machine-files.ts";
import { endMachines } from "./machines/machine-process.ts";
import { removeWires } from "./machines/private-network.ts";

/** Starting many machines takes time. A lock left behind under another name of this computer seems to be held for ever. */
const patienceMs = 5 * 60_000;

/** Ends all machines of a creation but keeps their files, so that they can be examined. */
export async function stopCreation(directory: string, clock: Clock, signal: AbortSignal): Promise<void> {
  await endMachines(await allProcessFiles(directory), clock, signal);
}

/**
 * Holds a lock while a creation's machines are started and while they are removed. Otherwise one process could remove them while another starts them,
 * and a machine started in a folder that is being removed would run on unnoticed. The lock is beside the folder, since the folder may be removed as
 * well.
 */
export async function lockMachines(directory: string, clock: Clock, signal: AbortSignal): Promise<AsyncDisposable> {
  const path = `${directory}.lock`;
  const error = new ClusterError("deadline-passed", "Another process has not done yet with this cluster's machines.", {
    hint: `Try again once it has. Where there is no such process, of this computer or another one, remove ${path}.`,
    facts: { lock: path },
  });
  const giveUp = { atMs: clock.now() + patienceMs, error };
  return acquireProcessLock(path, { clock, onWait: () => {}, giveUp }, signal);
}

/**
 * Ends a creation's machines and removes their files, but keeps its key and logs. Removes last what makes the creation findable, so that an
 * interrupted removal can be repeated. Throws `engine-failed` if a machine doesn't end.
 */
export async function removeCreation(directory: string, clock: Clock, signal: AbortSignal): Promise<void> {
  await using _ = await lockMachines(directory, clock, signal);
  const machines = await allProcessFiles(directory);
  await endMachines(machines, clock, signal);
  // A QEMU whose starter was killed may still be starting. Without a disk it can't start, and if it has already opened the disk, its process file
  // exists by now.
  await Promise.all(machines.map(async ({ disk }) => rm(disk, { force: true })));
  await endMachines(machines, clock, signal);
  await removeWires(directory);
  await rm(machinesFolder(directory), { recursive: true, force: true });
  await removeClusterFacts(directory);
}
