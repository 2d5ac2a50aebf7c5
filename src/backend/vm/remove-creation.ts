import { rm } from "node:fs/promises";
import type { Clock } from "../../system/runtime.ts";
import { lockMachines, type MachinesRuntime } from "../lock-machines.ts";
import { removeClusterFacts } from "./cluster-facts.ts";
import { allProcessFiles, machinesFolder } from "./machines/machine-files.ts";
import { endMachines } from "./machines/machine-process.ts";
import { snapshotsFolder } from "./snapshots/snapshot-files.ts";
import { removeSockets } from "./machines/private-network.ts";

/** Ends all machines of a creation but keeps their files, so that they can be examined. */
export async function stopCreation(directory: string, clock: Clock, signal: AbortSignal): Promise<void> {
  await endMachines(await allProcessFiles(directory), clock, signal);
}

/**
 * Ends a creation's machines and removes their files, but keeps its key and logs. Removes last what makes the creation findable, so that an
 * interrupted removal can be repeated. Throws `engine-failed` if a machine doesn't end.
 */
export async function removeCreation(directory: string, runtime: MachinesRuntime, signal: AbortSignal): Promise<void> {
  await using _ = await lockMachines(directory, runtime, signal);
  const { clock } = runtime;
  const machines = await allProcessFiles(directory);
  await endMachines(machines, clock, signal);
  // A QEMU whose starter was killed may still be starting. Without a disk it can't start, and if it has already opened the disk, its process file
  // exists by now.
  await Promise.all(machines.map(async ({ disk }) => rm(disk, { force: true })));
  await endMachines(machines, clock, signal);
  await removeSockets(directory);
  await rm(snapshotsFolder(directory), { recursive: true, force: true });
  await rm(machinesFolder(directory), { recursive: true, force: true });
  await removeClusterFacts(directory);
}
