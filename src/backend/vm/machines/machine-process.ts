import { isAccessible } from "../../../system/files/is-accessible.ts";
import { ClusterError } from "../../../errors.ts";
import type { Clock } from "../../../system/runtime.ts";
import { poll } from "../../../system/poll.ts";
import { commandOfProcess, signalProcess } from "../../../system/processes/process-command.ts";
import type { MachineFiles, ProcessFiles } from "./machine-files.ts";
import { queryRunState } from "../qemu/monitor.ts";
import { qemuMessage } from "../qemu/qemu.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { readOwnText } from "../../../system/files/read-text.ts";

/** `unstarted`: not started yet. `ended`: its QEMU came to an orderly end. `killed`: it did not. */
export type MachineLife = "unstarted" | "running" | "ended" | "killed" | Failure;

/** A machine that will never run again: its QEMU stopped it and waits, or crashed. */
export interface Failure {
  readonly failure: (typeof failedStates)[number] | "crashed";
  /** QEMU's message. */
  readonly said: string | undefined;
}

/** Run states of QEMU that a machine leaves only if a user intervenes through the monitor. */
const failedStates = ["internal-error", "guest-panicked", "io-error"] as const;
const saidLines = 2;

export async function machineLife(files: MachineFiles): Promise<MachineLife> {
  // Checked first: once this file exists, so do the process and its number. Before that, QEMU may have created its process file but not written it.
  const isStarted = await isAccessible(files.started);
  if (await isRunning(files)) {
    const runState = await queryRunState(files.folder);
    const failure = failedStates.find((state) => state === runState);
    return failure === undefined ? "running" : { failure, said: await saidByQemu(files) };
  }
  if (!isStarted) return "unstarted";
  if (!(await isAccessible(files.pid))) return "ended";
  const said = await saidByQemu(files);
  return said === undefined ? "killed" : { failure: "crashed", said };
}

async function saidByQemu({ qemuLog }: MachineFiles): Promise<string | undefined> {
  return qemuMessage(await readOwnText(qemuLog).catch(() => ""), saidLines);
}

export const isRunning = async (files: ProcessFiles): Promise<boolean> => (await runningPid(files)) !== undefined;

/**
 * Returns the number of the process that runs this very machine. The number alone proves nothing, since another process may have it by now, so its
 * command line must name the machine's own files.
 */
async function runningPid({ pid }: ProcessFiles): Promise<number | undefined> {
  const number = Number((await readOwnText(pid).catch(() => "")).trim());
  if (!Number.isSafeInteger(number) || number <= 1) return undefined;
  const command = await commandOfProcess(number);
  return command?.includes(pid) === true ? number : undefined;
}

/** Ends the running machines, first with TERM, then with KILL. Throws `engine-failed` if one doesn't end. */
export async function endMachines(machines: readonly ProcessFiles[], clock: Clock, signal: AbortSignal): Promise<void> {
  if (await endBy("TERM", machines, clock, signal)) return;
  await endBy("KILL", machines, clock, signal);
  const left = (await Promise.all(machines.map(runningPid))).filter((pid) => pid !== undefined);
  if (left.length === 0) return;
  throw new ClusterError("engine-failed", `QEMU does not exit: process ${left.join(", ")}.`, {
    hint: "Find out what it waits for, such as a disk that does not answer, then try again.",
    facts: { processes: left },
  });
}

async function endBy(
  name: "TERM" | "KILL",
  machines: readonly ProcessFiles[],
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const pids = await Promise.all(machines.map(runningPid));
  await Promise.all(pids.filter((pid) => pid !== undefined).map((pid) => signalProcess(pid, name)));
  const look = async (): Promise<true | undefined> => {
    const left = await Promise.all(machines.map(runningPid));
    return left.every((pid) => pid === undefined) || undefined;
  };
  const rule = ruleOf(name === "TERM" ? waits.machineTerm : waits.machineKill, clock);
  return (await poll(look, rule, signal)) === true;
}
