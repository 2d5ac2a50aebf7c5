import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { nodeReference } from "../../../model/cluster-record.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { isAccessible, writePrivateFile } from "../../../system/files/private-file.ts";
import { poll } from "../../../system/retry.ts";
import { systemClock } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { lockIdleMachines } from "../../shared/lock-machines.ts";
import type { NodeFacts } from "../cluster-facts.ts";
import { glanceMs } from "../machines/machine-life.ts";
import {
  type MachineFiles,
  endMachines,
  filesIn,
  isRunning,
  machineFiles,
  machinesFolder,
} from "../machines/machine-process.ts";
import { queryRunStateWithin, runOnMonitor, statusOf } from "../qemu/monitor.ts";

/** https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html#qapidoc-MigrationStatus */
const busy: ReadonlySet<string> = new Set([
  "setup",
  "active",
  "device",
  "cancelling",
  "pre-switchover",
]);

/** Exists while machines pause. The process that holds the machines' lock lets them continue. */
const notePath = (directory: string): string => join(directory, "paused");

interface Machines {
  readonly directory: string;
  readonly nodes: readonly NodeFacts[];
}

/**
 * Pauses all machines at about the same moment, for a caller that holds their lock. They continue when the result is
 * disposed of. See also `resumeForgotten`.
 */
export async function pauseMachines(
  { directory, nodes }: Machines,
  signal: AbortSignal,
): Promise<AsyncDisposable> {
  await writePrivateFile(notePath(directory), "");
  try {
    const stop = async (node: NodeFacts): Promise<unknown> =>
      runOnMonitor(machineFiles(directory, node).folder, [{ execute: "stop" }], signal);
    // It waits for all, since a machine that pauses late would not continue.
    await mapConcurrently(nodes, nodes.length, stop, signal);
  } catch (error) {
    await resumeMachines({ directory, nodes }, new AbortController().signal).catch(() => {});
    throw error;
  }
  return {
    [Symbol.asyncDispose]: async () =>
      resumeMachines({ directory, nodes }, new AbortController().signal),
  };
}

/**
 * Lets machines continue whose program was killed while they paused, and ends what it saved them
 * with. Every command that looks at the cluster does so; what the signal interrupts, the next one
 * does.
 */
export async function resumeForgotten(machines: Machines, signal: AbortSignal): Promise<void> {
  const { directory } = machines;
  const arePaused = async (): Promise<boolean> => isAccessible(notePath(directory));
  if (!(await arePaused()) && !(await hasReceivers(directory))) return;
  await using lock = await lockIdleMachines(directory, systemClock, signal);
  if (lock === undefined) return;
  if (await arePaused()) await resumeMachines(machines, signal);
  await endReceivers(directory, signal);
}

/** Throws `engine-failed` if a machine did not continue. If that one is still there, `resumeForgotten` tries again. */
export async function resumeMachines(
  { directory, nodes }: Machines,
  signal: AbortSignal,
): Promise<void> {
  const machines = nodes.map((node) => machineFiles(directory, node));
  const results = await Promise.allSettled(
    machines.map(async ({ folder }) => resume(folder, signal)),
  );
  const failed = results.find((result) => result.status === "rejected");
  const arePaused =
    failed !== undefined &&
    (signal.aborted || (await Promise.all(machines.map(mayBePaused))).includes(true));
  if (!arePaused) await rm(notePath(directory), { force: true });
  if (failed !== undefined) throw failed.reason;
}

/** One that runs and doesn't answer may be. */
async function mayBePaused(files: MachineFiles): Promise<boolean> {
  const state = await queryRunStateWithin(files.folder, glanceMs);
  return state === "paused" || (state === undefined && (await isRunning(files)));
}

/** A machine whose memory is still being written would stop again at the end of that. */
async function resume(folder: string, signal: AbortSignal): Promise<void> {
  await runOnMonitor(folder, [{ execute: "migrate_cancel" }], signal);
  const look = async (): Promise<true | undefined> => {
    const [result] = await runOnMonitor(folder, [{ execute: "query-migrate" }], signal);
    return busy.has(statusOf(result) ?? "") ? undefined : true;
  };
  await poll(look, ruleOf(waits.saveCancelled, systemClock), signal);
  await runOnMonitor(folder, [{ execute: "cont" }], signal);
}

const prefix = "receiver-";

/**
 * Receives what a machine saves. It is a QEMU like the machine's own, except that its memory is a
 * file of the snapshot, and it never runs: only memory that is a file can be mapped later, instead
 * of read.
 */
export const receiverFiles = (
  directory: string,
  node: Pick<NodeFacts, "role" | "index">,
): MachineFiles => filesIn(join(machinesFolder(directory), `${prefix}${nodeReference(node)}`));

/** Whether a program that was killed may have left receivers. */
const hasReceivers = async (directory: string): Promise<boolean> =>
  (await receiverNames(directory)).length > 0;

const receiverNames = async (directory: string): Promise<readonly string[]> =>
  (await readdir(machinesFolder(directory)).catch(() => [])).filter((name) =>
    name.startsWith(prefix),
  );

/** For a caller that holds the machines' lock. */
export async function endReceivers(directory: string, signal: AbortSignal): Promise<void> {
  const receivers = (await receiverNames(directory)).map((name) =>
    filesIn(join(machinesFolder(directory), name)),
  );
  await endMachines(receivers, systemClock, signal);
  for (const { folder } of receivers) await rm(folder, { recursive: true, force: true });
}
