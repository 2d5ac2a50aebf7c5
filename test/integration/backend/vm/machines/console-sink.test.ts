/** A machine's console goes through a pipe to files of limited size. */

import { mkdir, readdir, readlink, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  clusterConsoleOutput,
  openConsoleSink,
  readConsole,
} from "../../../../../src/backend/vm/machines/console-sink.ts";
import { machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import type { ClusterRecord } from "../../../../../src/model/cluster-record.ts";
import { machineNodes } from "../../../../support/machine-node.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { until } from "../../../../support/until.ts";

const mostBytes = 1_000_000;
const begun = "\ncluster-e2e: QEMU starts\n";

/** Stands for QEMU: a process that writes to the pipe until it ends. */
const writer = (folder: string, command: string) =>
  Bun.spawn(["sh", "-c", `{ ${command}; } >console.pipe`], { cwd: folder });

const reads = async (folder: string, end: string): Promise<boolean> =>
  (await readConsole(folder, mostBytes).catch(() => "")).endsWith(end);

test("output is readable while the machine runs, and after it was killed", async () => {
  await using folder = await scratchFolder();
  const sink = await openConsoleSink(folder.path);
  const machine = writer(folder.path, "echo booted; sleep 60 & wait");
  await until("the first line", async () => reads(folder.path, "booted\n"));
  await sink[Symbol.asyncDispose]();
  machine.kill("SIGKILL");
  await machine.exited;
  expect(await readConsole(folder.path, mostBytes)).toBe(`${begun}booted\n`);
});

test("a machine that writes without end takes 4 MB at most, and its last lines are kept", async () => {
  await using folder = await scratchFolder();
  const sink = await openConsoleSink(folder.path);
  const machine = writer(folder.path, "seq 3000000; echo the end");
  expect(await machine.exited).toBe(0);
  await sink[Symbol.asyncDispose]();
  await until("the last line", async () => reads(folder.path, "2999999\n3000000\nthe end\n"));
  const names = (await readdir(folder.path)).toSorted();
  expect(names).toEqual(["console-earlier.txt", "console.txt"]);
  const files = await Promise.all(names.map(async (name) => stat(join(folder.path, name))));
  expect(files.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(4_000_000);
  expect(files.map(({ mode }) => mode & 0o777)).toEqual([0o600, 0o600]);
  expect(await readConsole(folder.path, mostBytes)).toHaveLength(mostBytes);
});

test("a machine that starts again continues the same files", async () => {
  await using folder = await scratchFolder();
  for (const text of ["first", "second"]) {
    const sink = await openConsoleSink(folder.path);
    const machine = writer(folder.path, `echo ${text}`);
    await machine.exited;
    await sink[Symbol.asyncDispose]();
    await until(text, async () => reads(folder.path, `${text}\n`));
  }
  expect(await readConsole(folder.path, mostBytes)).toBe(`${begun}first\n${begun}second\n`);
});

test("a cluster's logs are the consoles, and the end of what each QEMU that wrote anything wrote", async () => {
  await using folder = await scratchFolder();
  const [first, second] = machineNodes.map((node) => machineFiles(folder.path, node));
  for (const files of [first!, second!]) {
    await mkdir(files.folder, { recursive: true });
    await writeFile(join(files.folder, "console.txt"), "booted\n");
    await writeFile(files.qemuLog, "");
  }
  await writeFile(second!.qemuLog, `first${"x".repeat(mostBytes)}last`);
  const cluster = { directory: folder.path, nodes: machineNodes } as unknown as ClusterRecord;
  const logs = await clusterConsoleOutput(cluster, neverAborted);
  expect(logs.map(({ name, text }) => [name, text.length])).toEqual([
    [expect.stringContaining("master_0"), 7],
    [expect.stringContaining("agent_0"), 7],
    ["agent_0.qemu.txt", mostBytes],
  ]);
  expect(logs[2]!.text).toEndWith("last");
});

test.skipIf(process.platform !== "linux")(
  "nothing goes on running without a machine that writes",
  async () => {
    await using folder = await scratchFolder();
    const sink = await openConsoleSink(folder.path);
    const sinks = async () => (await inFolder(folder.path)).length;
    await until("the sink", async () => (await sinks()) > 0);
    await sink[Symbol.asyncDispose]();
    await until("its end", async () => (await sinks()) === 0);
  },
);

/** The processes that work in this folder. */
async function inFolder(path: string): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^[0-9]+$/.test(name));
  const folders = await Promise.all(
    pids.map(async (pid) => readlink(`/proc/${pid}/cwd`).catch(() => "")),
  );
  return pids.filter((_, index) => folders[index] === path);
}
