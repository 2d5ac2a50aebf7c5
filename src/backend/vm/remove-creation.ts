import { rm } from "node:fs/promises";
import type { Clock } from "../../system/clock.ts";
import { readCluster, removeClusterFacts } from "./cluster-facts.ts";
import { machineFiles, machinesFolder, type ProcessFiles } from "./machine-files.ts";
import { endMachines } from "./machine-process.ts";
import { networkFiles } from "./private-network.ts";

/** Ends all machines of a creation, and leaves them to be looked at. */
export async function stopCreation(directory: string, clock: Clock, signal: AbortSignal): Promise<void> {
  await endMachines(await filesOf(directory), clock, signal);
}

/**
 * Ends a creation's machines and removes what they had; its key and logs stay. What makes it findable goes last, so that a removal that was cut
 * short can be done again. Throws `engine-failed` where a machine doesn't end.
 */
export async function removeCreation(directory: string, clock: Clock, signal: AbortSignal): Promise<void> {
  const machines = await filesOf(directory);
  await endMachines(machines, clock, signal);
  // A QEMU whose starter was killed may just be beginning: without a disk it can't, and one that has opened it has its process file by now.
  await Promise.all(machines.map(async ({ disk }) => rm(disk, { force: true })));
  await endMachines(machines, clock, signal);
  await rm(machinesFolder(directory), { recursive: true, force: true });
  await removeClusterFacts(directory);
}

async function filesOf(directory: string): Promise<readonly ProcessFiles[]> {
  const stored = await readCluster(directory);
  const machines = (stored?.facts.nodes ?? []).map((node) => machineFiles(directory, node));
  return [networkFiles(directory), ...machines];
}
