import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { open, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { readTail } from "../../../system/files/read-text.ts";
import { runProgram, systemEnvironment } from "../../../system/processes/run-program.ts";
import consoleSinkFile from "./console-sink.sh" with { type: "text" };
import { startLine } from "./boot-problem.ts";
import { consoleNames, machineFiles } from "./machine-process.ts";
import type { NamedText } from "../../contract.ts";
import {
  type ClusterRecord,
  nodeReference,
  type NodeRecord,
} from "../../../model/cluster-record.ts";
import { consoleOutputs } from "../../shared/node-scripts.ts";

/** The blocks of `ulimit -f` have 512 bytes. */
const blocks = 3_906;
const fileBytes = blocks * 512;

/** The name of the pipe in the machine's folder, in which QEMU is started. */
export const consolePipeName = "console.pipe";

const script = shellText(consoleSinkFile, {
  CURRENT: consoleNames.current,
  EARLIER: consoleNames.earlier,
  BLOCKS: blocks,
  FILE_BYTES: fileBytes,
});

/**
 * Opens the pipe that a machine's console writes to. What arrives is kept in two files in the same
 * folder: the newest 2 to 4 MB. A small shell in the background does that until the last writer has
 * ended; if it is killed, the machine runs on, and its console is no longer recorded. Dispose of
 * the result once QEMU has opened the pipe, or has failed.
 */
export async function openConsoleSink(folder: string): Promise<AsyncDisposable> {
  const pipe = join(folder, consolePipeName);
  await rm(pipe, { force: true });
  const run = { argv: ["mkfifo", "-m", "600", pipe], environment: systemEnvironment } as const;
  const made = await runProgram(run, new AbortController().signal);
  if (made.status !== 0) throw noPipe(folder, made.stderr);
  // A pipe can be opened for writing once it has a reader, and a reader that waits can be opened once it has a writer.
  await using _first = await open(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = await open(pipe, constants.O_WRONLY);
  await writer.write(`\n${startLine}\n`);
  await using reader = await open(pipe, constants.O_RDONLY);
  const child = spawn("/bin/sh", ["-c", script], {
    cwd: folder,
    env: systemEnvironment,
    detached: true,
    stdio: [reader.fd, "ignore", "ignore"],
  });
  child.on("error", () => {}).unref();
  return {
    [Symbol.asyncDispose]: async () => {
      await writer.close();
      await rm(pipe, { force: true });
    },
  };
}

/** Returns what the machine wrote last, also after its end. Throws if it never wrote anything. */
export async function readConsole(folder: string, mostBytes: number): Promise<string> {
  const earlier = await readFile(join(folder, consoleNames.earlier)).catch(() => Buffer.alloc(0));
  const current = await readFile(join(folder, consoleNames.current));
  const whole = Buffer.concat([earlier, current]);
  return whole.toString("utf8", Math.max(0, whole.length - mostBytes));
}

/** Changes whenever the machine writes to its console. */
export async function consoleProgress(folder: string): Promise<string> {
  const names = [consoleNames.earlier, consoleNames.current];
  const sizes = names.map(
    async (name) => (await stat(join(folder, name)).catch(() => undefined))?.size,
  );
  return (await Promise.all(sizes)).join("+");
}

const noPipe = (folder: string, said: string): ClusterError =>
  new ClusterError("machine-not-set-up", `Cannot create a pipe in ${folder}: ${said.trim()}`, {
    hint: "Set XDG_STATE_HOME to a folder on a local disk.",
    facts: { folder },
  });

const mostBytes = 1_000_000;

/**
 * Returns what each node wrote to its serial console (firmware, bootloader, kernel, services), and
 * what its QEMU wrote to stderr.
 */
export async function clusterConsoleOutput(
  cluster: ClusterRecord,
  signal: AbortSignal,
): Promise<readonly NamedText[]> {
  const { nodes, directory } = cluster;
  const [consoles, logs] = await Promise.all([
    consoleOutputs(nodes, async (node) => consoleOutput(directory, node), signal),
    Promise.all(nodes.map(async (node) => qemuLog(directory, node))),
  ]);
  return [...consoles, ...logs.filter(({ text }) => text !== "")];
}

async function qemuLog(directory: string, node: NodeRecord): Promise<NamedText> {
  // A QEMU may write a lot.
  const text = await readTail(machineFiles(directory, node).qemuLog, mostBytes);
  return { name: `${nodeReference(node)}.qemu.txt`, text };
}

export const consoleOutput = async (directory: string, node: NodeRecord): Promise<string> =>
  readConsole(machineFiles(directory, node).folder, mostBytes);
