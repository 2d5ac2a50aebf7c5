/** How a machine's memory and disk are saved, with a scripted monitor that writes what QEMU would. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import type { NodeFacts } from "../../../../../src/backend/vm/cluster-facts.ts";
import { machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import { runOnMonitor } from "../../../../../src/backend/vm/qemu/monitor.ts";
import { describeFiles, saveMachines } from "../../../../../src/backend/vm/snapshots/save-machines.ts";
import { failureOf, rejectionOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { startMonitor } from "../scripted-monitor.ts";

const node = { role: "agent", index: 0 } as NodeFacts;

/** QEMU gives its memory to the command's stdin, and doesn't look at its status. */
async function migrate(uri: string, memory: string): Promise<void> {
  const command = uri.slice("exec:".length);
  await Bun.spawn(["sh", "-c", command], { stdin: Buffer.from(memory), stderr: "ignore" }).exited;
}

interface Given {
  /** The answers to "query-migrate", in turn; the last one stays. */
  readonly statuses: readonly object[];
  /** What is written of the memory; undefined: nothing, because the command ended too early. */
  readonly memory?: string;
  /** The variables of the machine's firmware, if it isn't built in. */
  readonly variables?: string;
}

/** Saves a machine. Its clock runs a thousand times faster. */
async function save({ statuses, memory, variables }: Given) {
  const scratch = await scratchFolder();
  const [directory, folder] = [join(scratch.path, "cluster"), join(scratch.path, "snapshot")];
  const files = machineFiles(directory, node);
  const asked: string[] = [];
  await using _ = await startMonitor(files.folder, async ({ execute, arguments: given }) => {
    asked.push(execute);
    if (execute === "migrate" && memory !== undefined) await migrate(String(given?.["uri"]), memory);
    const looks = asked.filter((each) => each === "query-migrate").length;
    return execute === "query-migrate" ? statuses[Math.min(looks, statuses.length) - 1] : {};
  });
  await mkdir(folder);
  await writeFile(files.disk, "the disk");
  if (variables !== undefined) await writeFile(files.flash.variables, variables);
  const time = { ms: 0 };
  const sleep = async (ms: number): Promise<void> => {
    time.ms += 1_000 * ms;
    await Bun.sleep(0);
  };
  const saving = saveMachines({ directory, nodes: [node], folder, clock: { now: () => time.ms, sleep } }, neverAborted);
  const ended = await rejectionOf(saving);
  return { folder, asked, ended, [Symbol.asyncDispose]: scratch[Symbol.asyncDispose] };
}

test("the memory and the disk are saved once QEMU has written all of the memory", async () => {
  await using saved = await save({ statuses: [{ status: "active" }, { status: "completed" }], memory: "the memory" });
  expect(saved.ended).toBeUndefined();
  expect(saved.asked).toEqual([
    "migrate-set-capabilities",
    "migrate-set-parameters",
    "migrate",
    "query-migrate",
    "query-migrate",
  ]);
  const read = async (name: string) => readFile(join(saved.folder, "agent_0", name), "utf8");
  expect([await read("memory"), await read("disk.qcow2")]).toEqual(["the memory", "the disk"]);
  const facts = await describeFiles({ folder: saved.folder, nodes: [node] }, neverAborted);
  expect(Object.entries(facts).map(([name, { bytes }]) => [name, bytes])).toEqual([
    ["agent_0/disk.qcow2", 8],
    ["agent_0/memory", 10],
  ]);
});

test("the variables of a machine's own firmware are saved with it", async () => {
  await using saved = await save({ statuses: [{ status: "completed" }], memory: "", variables: "boot order" });
  expect(await readFile(join(saved.folder, "agent_0", "firmware-variables.qcow2"), "utf8")).toBe("boot order");
});

test.each(["failed", "cancelled"])("a QEMU whose saving has %s is an error with its own message", async (status) => {
  await using saved = await save({ statuses: [{ status, "error-desc": "a device can't be saved" }], memory: "" });
  expect(saved.ended).toMatchObject({ id: "engine-failed" });
  expect(String(saved.ended)).toMatch(/QEMU could not write the memory to .*: a device can't be saved\.$/);
});

test("a memory that ends before it is whole is an error", async () => {
  await using saved = await save({ statuses: [{ status: "completed" }] });
  expect(saved.ended).toMatchObject({ id: "engine-failed", message: expect.stringMatching(/agent_0\/memory\.$/) });
});

test("a QEMU that saves for a quarter of an hour is not waited for any longer", async () => {
  await using saved = await save({ statuses: [{ status: "active" }], memory: "" });
  expect(saved.ended).toMatchObject({ id: "deadline-passed", message: expect.stringContaining("longer than 15 min") });
});

test("a monitor that never answers is an error that says so", async () => {
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, "agent_0");
  await using _ = await startMonitor(folder, async () => undefined);
  const failure = await failureOf(runOnMonitor(folder, [{ execute: "stop" }], neverAborted));
  expect(failure).toMatchObject({ id: "engine-failed" });
  expect(failure.message).toBe('QEMU did not do "stop" for agent_0: it does not answer.');
}, 30_000);
