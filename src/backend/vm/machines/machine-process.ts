import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { type NodeRecord, nodeReference } from "../../../model/cluster-record.ts";
import { errorCode, writePrivateFile } from "../../../system/files/private-file.ts";
import { readOwnJson, readOwnText } from "../../../system/files/read-text.ts";
import { poll } from "../../../system/retry.ts";
import {
  fateOf,
  holdsFile,
  parseProcessSpace,
  readProcessSpace,
  signalProcess,
} from "../../../system/processes/process-identity.ts";
import type { ProgramEnd } from "../../../system/processes/run-program.ts";
import type { Clock } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";

/**
 * A machine that was started in another container, on another computer, or by another user counts
 * as running: nothing here shows that it has ended.
 */
export const isRunning = async (files: ProcessFiles): Promise<boolean> =>
  (await runningPid(files)) !== undefined;

/**
 * Returns the number of the process that runs this very machine. The number alone proves nothing,
 * since another process may have it by now, and neither does a command line, which anybody can
 * write. QEMU locks its process file for as long as it runs.
 */
async function runningPid({
  pid,
  space,
}: ProcessFiles): Promise<number | "elsewhere" | "hidden" | undefined> {
  const text = await readOwnText(pid).catch((error: unknown) =>
    errorCode(error) === "EACCES" ? undefined : "",
  );
  if (text === undefined) return "hidden";
  const number = Number(text.trim());
  if (!Number.isSafeInteger(number) || number <= 1) return undefined;
  const startedIn = await readOwnJson(space, parseProcessSpace);
  const fate = startedIn === undefined ? "here" : fateOf(startedIn, await readProcessSpace());
  if (fate === "elsewhere") return "elsewhere";
  const held = fate === "here" && (await holdsFile(number, pid));
  if (held === "hidden") return held;
  return held ? number : undefined;
}

/** Ends the running machines, first with TERM, then with KILL. Throws `engine-failed` if one doesn't end. */
export async function endMachines(
  machines: readonly ProcessFiles[],
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  await assertHere(machines);
  if (await endBy("TERM", machines, clock, signal)) return;
  await endBy("KILL", machines, clock, signal);
  const left = await pidsOf(machines);
  if (left.length === 0) return;
  throw new ClusterError("engine-failed", `QEMU does not exit: process ${left.join(", ")}.`, {
    hint: "Find out what it waits for, such as a disk that does not answer, then try again.",
    facts: { processes: left },
  });
}

async function assertHere(machines: readonly ProcessFiles[]): Promise<void> {
  for (const files of machines) {
    const found = await runningPid(files);
    if (found !== "elsewhere" && found !== "hidden") continue;
    const [where, hint] =
      found === "hidden"
        ? ["by another user", "as that user. If that QEMU has ended"]
        : [
            "in another container, or on another computer",
            "there. If that container or computer no longer exists",
          ];
    throw new ClusterError("engine-failed", `A QEMU was started ${where}.`, {
      hint: `Run the command ${hint}, remove ${files.pid}, and try again.`,
      facts: { file: files.pid },
    });
  }
}

const pidsOf = async (machines: readonly ProcessFiles[]): Promise<readonly number[]> =>
  (await Promise.all(machines.map(runningPid))).filter((pid) => typeof pid === "number");

const startTries = 5;

/**
 * Starts a QEMU, and records where its number counts. One that a killed program left, and that
 * nobody could find because it was only starting, ends first.
 */
export async function startQemu(
  files: ProcessFiles,
  start: () => Promise<ProgramEnd>,
  clock: Clock,
  signal: AbortSignal,
): Promise<ProgramEnd> {
  for (let tries = 1; ; tries += 1) {
    await assertHere([files]);
    await writePrivateFile(files.space, JSON.stringify(await readProcessSpace()));
    const end = await start();
    if (tries === startTries || !/cannot lock pid file/i.test(end.stderr)) return end;
    await endMachines([files], clock, signal);
  }
}

async function endBy(
  name: "TERM" | "KILL",
  machines: readonly ProcessFiles[],
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  await Promise.all((await pidsOf(machines)).map((pid) => signalProcess(pid, name)));
  const look = async (): Promise<true | undefined> =>
    (await pidsOf(machines)).length === 0 || undefined;
  const rule = ruleOf(name === "TERM" ? waits.machineTerm : waits.machineKill, clock);
  return (await poll(look, rule, signal)) === true;
}

/** The files that identify one of our QEMU processes and that it can't start without, by absolute path. */
export interface ProcessFiles {
  readonly disk: string;
  /** QEMU's process file. It exists while QEMU runs, disappears after an orderly end, and stays behind after a kill. */
  readonly pid: string;
  /** The place whose numbers of processes the process file has. */
  readonly space: string;
}

/** The files of one machine in its cluster's folder; the disk is a layer on top of the image. */
export interface MachineFiles extends ProcessFiles {
  readonly folder: string;
  /** Layers on top of the firmware, for machines whose firmware isn't built in. */
  readonly flash: { readonly program: string; readonly variables: string };
  /** The files that cloud-init reads at the first boot. */
  readonly seed: string;
  /** The newest part of the console output. */
  readonly console: string;
  readonly qemuLog: string;
  /**
   * Exists once QEMU has reported that the machine runs. A console file isn't enough: an attempt
   * that found its ports taken leaves one too.
   */
  readonly started: string;
}

export const qemuLogName = "qemu.txt";

/** The files in a machine's folder with the end of its console output. */
export const consoleNames = { earlier: "console-earlier.txt", current: "console.txt" } as const;

export function machineFiles(
  directory: string,
  node: Pick<NodeRecord, "role" | "index">,
): MachineFiles {
  return filesIn(join(machinesFolder(directory), nodeReference(node)));
}

export function filesIn(folder: string): MachineFiles {
  return {
    folder,
    ...processFiles(folder),
    flash: {
      program: join(folder, "firmware.qcow2"),
      variables: join(folder, "firmware-variables.qcow2"),
    },
    seed: join(folder, "seed"),
    console: join(folder, consoleNames.current),
    qemuLog: join(folder, qemuLogName),
    started: join(folder, "started"),
  };
}

export const processFiles = (folder: string): ProcessFiles => ({
  disk: join(folder, "disk.qcow2"),
  pid: join(folder, "qemu.pid"),
  space: join(folder, "processes.json"),
});

/**
 * Returns the files of every QEMU that a creation may have, found by the folders alone: facts may
 * be missing, damaged, or from another version.
 */
export async function allProcessFiles(directory: string): Promise<readonly ProcessFiles[]> {
  const machines = machinesFolder(directory);
  const entries = await readdir(machines, { withFileTypes: true }).catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => processFiles(join(machines, name)));
}

export const machinesFolder = (directory: string): string => join(directory, "machines");
