import { rm } from "node:fs/promises";
import { join } from "node:path";
import { isAccessible, writePrivateFile } from "../../../system/files/private-file.ts";
import { poll } from "../../../system/retry.ts";
import { systemClock } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { lockIdleMachines } from "../../shared/lock-machines.ts";
import type { NodeFacts } from "../cluster-facts.ts";
import { machineFiles } from "../machines/machine-process.ts";
import { runOnMonitor, statusOf } from "../qemu/monitor.ts";

/** https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html#qapidoc-MigrationStatus */
const busy: ReadonlySet<string> = new Set(["setup", "active", "device", "cancelling", "pre-switchover"]);

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
export async function pauseMachines({ directory, nodes }: Machines, signal: AbortSignal): Promise<AsyncDisposable> {
  await writePrivateFile(notePath(directory), "");
  try {
    const stop = [{ execute: "stop" }];
    await Promise.all(nodes.map(async (node) => runOnMonitor(machineFiles(directory, node).folder, stop, signal)));
  } catch (error) {
    await resumeMachines({ directory, nodes }).catch(() => {});
    throw error;
  }
  return { [Symbol.asyncDispose]: async () => resumeMachines({ directory, nodes }) };
}

/**
 * Lets machines continue whose program was killed while they paused. Every command that looks at the cluster does so.
 */
export async function resumeForgotten(machines: Machines): Promise<void> {
  const { directory } = machines;
  if (!(await isAccessible(notePath(directory)))) return;
  await using lock = await lockIdleMachines(directory, systemClock, new AbortController().signal);
  if (lock !== undefined && (await isAccessible(notePath(directory)))) await resumeMachines(machines);
}

export async function resumeMachines({ directory, nodes }: Machines): Promise<void> {
  const outcomes = await Promise.allSettled(nodes.map(async (node) => resume(machineFiles(directory, node).folder)));
  await rm(notePath(directory), { force: true });
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

/** A machine whose memory is still being written would stop again at the end of that. */
async function resume(folder: string): Promise<void> {
  const { signal } = new AbortController();
  await runOnMonitor(folder, [{ execute: "migrate_cancel" }], signal);
  const look = async (): Promise<true | undefined> => {
    const [result] = await runOnMonitor(folder, [{ execute: "query-migrate" }], signal);
    return busy.has(statusOf(result) ?? "") ? undefined : true;
  };
  await poll(look, ruleOf(waits.saveCancelled, systemClock), signal);
  await runOnMonitor(folder, [{ execute: "cont" }], signal);
}
