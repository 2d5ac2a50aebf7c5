import { isAccessible } from "../../../system/files/private-file.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { queryRunStateWithin } from "../qemu/monitor.ts";
import { qemuMessage } from "../qemu/qemu.ts";
import { type MachineFiles, isRunning } from "./machine-process.ts";

/** `unstarted`: not started yet. `ended`: its QEMU came to an orderly end. `killed`: it did not. */
export type MachineLife = "unstarted" | "running" | "paused" | "ended" | "killed" | Failure;

/** A machine that will never run again: its QEMU stopped it and waits, or crashed. */
export interface Failure {
  readonly failure: (typeof failedStates)[number] | "crashed";
  readonly said: string | undefined;
}

/** Run states of QEMU that a machine leaves only if a user intervenes through the monitor. */
const failedStates = ["internal-error", "guest-panicked", "io-error"] as const;
const saidLines = 2;
/**
 * Commands that only show machines, such as `list`, wait no longer for QEMU. A machine whose QEMU
 * does not answer counts as running.
 */
export const glanceMs = 5_000;

export async function machineLife(files: MachineFiles): Promise<MachineLife> {
  // Checked first: once this file exists, so do the process and its number. Before that, QEMU may
  // have created its process file but not written it.
  const isStarted = await isAccessible(files.started);
  if (await isRunning(files)) {
    const runState = await queryRunStateWithin(files.folder, glanceMs);
    const failure = failedStates.find((state) => state === runState);
    if (failure === undefined) return runState === "paused" ? "paused" : "running";
    return { failure, said: await saidByQemu(files) };
  }
  if (!isStarted) return "unstarted";
  if (!(await isAccessible(files.pid))) return "ended";
  const said = await saidByQemu(files);
  return said === undefined ? "killed" : { failure: "crashed", said };
}

async function saidByQemu({ qemuLog }: MachineFiles): Promise<string | undefined> {
  return qemuMessage(await readOwnText(qemuLog).catch(() => ""), saidLines);
}
