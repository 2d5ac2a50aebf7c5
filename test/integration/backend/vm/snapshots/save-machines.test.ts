/** How a machine's memory and disk are saved, with scripted monitors of it and its receiver that write what QEMU would. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import type { NodeFacts } from "../../../../../src/backend/vm/cluster-facts.ts";
import { machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import { runOnMonitor } from "../../../../../src/backend/vm/qemu/monitor.ts";
import { receiverFiles } from "../../../../../src/backend/vm/snapshots/pause-machines.ts";
import { type Saving, saveStates } from "../../../../../src/backend/vm/snapshots/receivers.ts";
import {
  describeFiles,
  saveMachines,
} from "../../../../../src/backend/vm/snapshots/save-machines.ts";
import { failureOf, rejectionOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { startMonitor } from "../scripted-monitor.ts";

const node = { role: "agent", index: 0 } as NodeFacts;

/** QEMU gives its state to the command's stdin, and doesn't look at its status. */
async function migrate(uri: string, state: string): Promise<void> {
  const command = uri.slice("exec:".length);
  await Bun.spawn(["sh", "-c", command], { stdin: Buffer.from(state), stderr: "ignore" }).exited;
}

interface Given {
  /** The machine's answers to "query-migrate", in turn; the last one stays. */
  readonly statuses: readonly object[];
  /** What the receiver writes of the state; undefined: nothing, because the command ended too early. */
  readonly state?: string;
  /** The variables of the machine's firmware, if it isn't built in. */
  readonly variables?: string;
}

/** Saves a machine. Its clock runs a thousand times faster. */
async function save({ statuses, state, variables }: Given) {
  const scratch = await scratchFolder();
  const [directory, folder] = [join(scratch.path, "cluster"), join(scratch.path, "snapshot")];
  const files = machineFiles(directory, node);
  const [asked, ofReceiver]: [string[], string[]] = [[], []];
  await using _ = await startMonitor(files.folder, async ({ execute, arguments: given }) => {
    asked.push(execute === "migrate" ? `migrate ${String(given?.["uri"]).split(":")[0]}` : execute);
    const looks = asked.filter((each) => each === "query-migrate").length;
    return Promise.resolve(
      execute === "query-migrate" ? statuses[Math.min(looks, statuses.length) - 1] : {},
    );
  });
  await using _receiver = await startMonitor(
    receiverFiles(directory, node).folder,
    async (command) => {
      const { execute, arguments: given } = command;
      ofReceiver.push(execute);
      if (execute === "migrate" && state !== undefined)
        await migrate(String(given?.["uri"]), state);
      if (execute === "query-status") return { status: "paused" };
      return execute === "query-migrate" ? { status: "completed" } : {};
    },
  );
  await mkdir(join(folder, "agent_0"), { recursive: true });
  await writeFile(files.disk, "the disk");
  if (variables !== undefined) await writeFile(files.flash.variables, variables);
  const time = { ms: 0 };
  const sleep = async (ms: number): Promise<void> => {
    time.ms += 1_000 * ms;
    await Bun.sleep(0);
  };
  const stored = { directory, facts: { nodes: [node] } } as unknown as Saving["stored"];
  const saving = { stored, folder, clock: { now: () => time.ms, sleep } } as unknown as Saving;
  const saveAll = async (): Promise<void> => {
    await saveMachines(saving, neverAborted);
    await saveStates(saving, neverAborted);
  };
  const ended = await rejectionOf(saveAll());
  return { folder, asked, ofReceiver, ended, [Symbol.asyncDispose]: scratch[Symbol.asyncDispose] };
}

test("the memory goes to the receiver, which writes the state, and the disk is saved when all of the memory is there", async () => {
  await using saved = await save({
    statuses: [{ status: "active" }, { status: "completed" }],
    state: "the state",
  });
  expect(saved.ended).toBeUndefined();
  expect(saved.asked).toEqual([
    "migrate-set-capabilities",
    "migrate-set-parameters",
    "migrate unix",
    "query-migrate",
    "query-migrate",
  ]);
  expect(saved.ofReceiver.filter((each) => !each.startsWith("query"))).toEqual([
    "migrate-incoming",
    "migrate-set-capabilities",
    "migrate-set-parameters",
    "migrate",
  ]);
  const read = async (name: string) => readFile(join(saved.folder, "agent_0", name), "utf8");
  expect([await read("state"), await read("disk.qcow2")]).toEqual(["the state", "the disk"]);
  const facts = await describeFiles({ folder: saved.folder, nodes: [node] }, neverAborted);
  expect(Object.entries(facts).map(([name, { bytes }]) => [name, bytes])).toEqual([
    ["agent_0/disk.qcow2", 8],
    ["agent_0/state", 9],
  ]);
});

test("the variables of a machine's own firmware are saved with it", async () => {
  await using saved = await save({
    statuses: [{ status: "completed" }],
    state: "",
    variables: "boot order",
  });
  expect(await readFile(join(saved.folder, "agent_0", "firmware-variables.qcow2"), "utf8")).toBe(
    "boot order",
  );
});

test.each(["failed", "cancelled"])(
  "a QEMU whose saving has %s is an error with its own message",
  async (status) => {
    await using saved = await save({
      statuses: [{ status, "error-desc": "a device can't be saved" }],
      state: "",
    });
    expect(saved.ended).toMatchObject({ id: "engine-failed" });
    expect(String(saved.ended)).toMatch(
      /QEMU could not write the memory to .*: a device can't be saved\.$/,
    );
  },
);

test("a state that ends before it is whole is an error", async () => {
  await using saved = await save({ statuses: [{ status: "completed" }] });
  expect(saved.ended).toMatchObject({
    id: "engine-failed",
    message: expect.stringMatching(/agent_0\/state\.$/),
  });
});

test("a QEMU that has written nothing more for a quarter of an hour is not waited for any longer", async () => {
  const statuses = [1e6, 2e6, 3e6].map((transferred) => ({
    status: "active",
    ram: { transferred },
  }));
  await using saved = await save({ statuses, state: "" });
  expect(saved.ended).toMatchObject({
    id: "deadline-passed",
    message: expect.stringMatching(/^QEMU has written nothing more .* for 15 min, after 3 MB\.$/),
  });
});

test("a monitor that never answers is an error that says so", async () => {
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, "agent_0");
  await using _ = await startMonitor(folder, async () => undefined);
  const failure = await failureOf(runOnMonitor(folder, [{ execute: "stop" }], neverAborted, 100));
  expect(failure).toMatchObject({ id: "engine-failed" });
  expect(failure.message).toBe('QEMU did not do "stop" for agent_0: it does not answer.');
});
