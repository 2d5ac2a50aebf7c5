import { rm } from "node:fs/promises";
import { ClusterError } from "../../errors.ts";
import type { Clock } from "../../system/clock.ts";
import { acquireProcessLock } from "../../system/processes/process-lock.ts";
import { removeClusterFacts } from "./cluster-facts.ts";
import { allProcessFiles, machinesFolder } from "./machines/machine-files.ts";
import { endMachines } from "./machines/machine-process.ts";
import { removeWires } from "./machines/private-network.ts";

/** Starting many machines takes its time; a lock that was left under another name of this computer seems to be held for ever. */
const patienceMs = 5 * 60_000;

/** Ends all machines of a creation, and leaves them to be looked at. */
export async function stopCreation(directory: string, clock: Clock, signal: AbortSignal): Promise<void> {
  await endMachines(await allProcessFiles(directory), clock, signal);
}

/**
 * Held while a creation's machines are started, and while they are removed: another process may do the one during the other, and what is started
 * in a folder that is being removed would run on, known to nobody. Beside the folder, since that may be removed as well.
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
 * Ends a creation's machines and removes what they had; its key and logs stay. What makes it findable goes last, so that a removal that was cut
 * short can be done again. Throws `engine-failed` where a machine doesn't end.
 */
export async function removeCreation(directory: string, clock: Clock, signal: AbortSignal): Promise<void> {
  await using _ = await lockMachines(directory, clock, signal);
  const machines = await allProcessFiles(directory);
  await endMachines(machines, clock, signal);
  // A QEMU whose starter was killed may just be beginning: without a disk it can't, and one that has opened it has its process file by now.
  await Promise.all(machines.map(async ({ disk }) => rm(disk, { force: true })));
  await endMachines(machines, clock, signal);
  await removeWires(directory);
  await rm(machinesFolder(directory), { recursive: true, force: true });
  await removeClusterFacts(directory);
}
