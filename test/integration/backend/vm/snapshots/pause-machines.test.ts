/** How machines pause and continue, with a scripted monitor. */

import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { type NodeFacts, writeClusterFacts } from "../../../../../src/backend/vm/cluster-facts.ts";
import { lockMachines } from "../../../../../src/backend/shared/lock-machines.ts";
import { isRunning, machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import {
  pauseMachines,
  receiverFiles,
  resumeForgotten,
  resumeMachines,
} from "../../../../../src/backend/vm/snapshots/pause-machines.ts";
import { observeCluster } from "../../../../../src/backend/vm/records.ts";
import { createVmBackend } from "../../../../../src/backend/vm/vm-backend.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { startQemuProcess } from "../../../../support/qemu-process.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { stored } from "../../../../unit/backend/vm/machine-cluster.ts";
import { startMonitor } from "../scripted-monitor.ts";

const node = { role: "agent", index: 0 } as NodeFacts;

test.each([
  ["none", [{}], 1],
  ["cancelled", [{ status: "cancelled" }], 1],
  [
    "still being cancelled",
    [{ status: "cancelling" }, { status: "cancelling" }, { status: "cancelled" }],
    3,
  ],
])("a machine whose saving is %s continues when that is over", async (_, statuses, looks) => {
  await using scratch = await scratchFolder();
  const asked: string[] = [];
  await using _monitor = await startMonitor(
    machineFiles(scratch.path, node).folder,
    async ({ execute }) => {
      asked.push(execute);
      const looked = asked.filter((each) => each === "query-migrate").length;
      return execute === "query-migrate" ? statuses[looked - 1] : {};
    },
  );
  await resumeMachines({ directory: scratch.path, nodes: [node] }, neverAborted);
  expect(asked).toEqual([
    "migrate_cancel",
    ...Array.from({ length: looks }, () => "query-migrate"),
    "cont",
  ]);
});

test("if one machine can't pause, the others continue once they have paused, and nothing is left to do", async () => {
  await using scratch = await scratchFolder();
  const asked: string[] = [];
  await using _monitor = await startMonitor(
    machineFiles(scratch.path, node).folder,
    async ({ execute }) => {
      // Meanwhile the other machine's failure is known.
      if (execute === "stop") await Bun.sleep(100);
      asked.push(execute);
      return {};
    },
  );
  const gone = { role: "agent", index: 1 } as NodeFacts;
  const pausing = pauseMachines({ directory: scratch.path, nodes: [gone, node] }, neverAborted);
  expect(await failureOf(pausing)).toMatchObject({
    id: "engine-failed",
    message: expect.stringContaining('QEMU did not do "stop" for agent_1'),
  });
  expect(asked).toEqual(["stop", "migrate_cancel", "query-migrate", "cont", "query-status"]);
  expect(await readdir(scratch.path)).toEqual(["machines"]);
});

test("a machine that did not continue is tried again", async () => {
  await using scratch = await scratchFolder();
  const machine = { state: "running", obeys: false };
  await using _monitor = await startMonitor(
    machineFiles(scratch.path, node).folder,
    async ({ execute }) => {
      if (execute === "stop") machine.state = "paused";
      if (execute === "cont" && machine.obeys) machine.state = "running";
      if (execute === "query-migrate") return {};
      return execute === "cont" && !machine.obeys
        ? new Error("not now")
        : { status: machine.state };
    },
  );
  const machines = { directory: scratch.path, nodes: [node] };
  const paused = await pauseMachines(machines, neverAborted);
  expect(await failureOf(Promise.resolve(paused[Symbol.asyncDispose]()))).toMatchObject({
    id: "engine-failed",
  });
  machine.obeys = true;
  await resumeForgotten(machines, neverAborted);
  expect([machine.state, await readdir(scratch.path)]).toEqual(["running", ["machines"]]);
});

test("a machine that runs, and doesn't say whether it is paused, is tried again", async () => {
  await using scratch = await scratchFolder();
  const files = machineFiles(scratch.path, node);
  const asked: string[] = [];
  const state = { says: "" };
  await using _monitor = await startMonitor(files.folder, async ({ execute }) => {
    asked.push(execute);
    return execute === "cont" && state.says === "" ? new Error("not now") : { status: state.says };
  });
  await using process = await startQemuProcess(files.pid);
  await writeFile(files.pid, `${process.pid}\n`);
  const machines = { directory: scratch.path, nodes: [node] };
  const paused = await pauseMachines(machines, neverAborted);
  await failureOf(Promise.resolve(paused[Symbol.asyncDispose]()));
  state.says = "running";
  asked.length = 0;
  await resumeForgotten(machines, neverAborted);
  expect(asked).toContain("cont");
  expect(await readdir(scratch.path)).toEqual(["machines"]);
});

test("a look at machines whose QEMU doesn't answer ends soon, and the next look lets them continue", async () => {
  await using scratch = await scratchFolder();
  const state = { answers: false };
  const asked: string[] = [];
  const [machine, ...others] = stored.facts.nodes;
  const files = machineFiles(scratch.path, machine!);
  await using _monitor = await startMonitor(files.folder, async ({ execute }) => {
    asked.push(execute);
    return state.answers ? { status: "running" } : undefined;
  });
  await using process = await startQemuProcess(files.pid);
  await writeFile(files.pid, `${process.pid}\n`);
  await writeFile(join(scratch.path, "paused"), "");
  const look = async () => {
    const { nodes } = await observeCluster({ directory: scratch.path, facts: stored.facts });
    return nodes.map(({ state: now }): string => now);
  };
  const states = ["running", ...others.map(() => "starting")];
  expect([await look(), asked.includes("cont")]).toEqual([states, false]);
  state.answers = true;
  expect([await look(), asked.includes("cont")]).toEqual([states, true]);
  expect(await readdir(scratch.path)).toEqual(["machines"]);
});

test("a command that waits for a QEMU which must continue its machines can be interrupted", async () => {
  await using scratch = await scratchFolder();
  const directory = join(scratch.path, "cluster-e2e", "vm", "one-0123456789abcdef");
  const interrupt = new AbortController();
  const { folder } = machineFiles(directory, stored.facts.nodes[0]!);
  await using _monitor = await startMonitor(folder, async () => {
    interrupt.abort(new Error("interrupted"));
    return undefined;
  });
  const facts = { ...stored.facts, clusterId: "one", creationId: "0123456789abcdef" };
  await writeClusterFacts(directory, facts);
  await writeFile(join(directory, "paused"), "");
  const runtime = { clock: systemClock, progress: silentProgress };
  const backend = createVmBackend({ ...runtime, environment: { XDG_STATE_HOME: scratch.path } });
  expect(await failureOf(backend.find("one", interrupt.signal))).toBe(interrupt.signal.reason);
});

test("what a killed program saved machines with is ended and removed, but not while another program works on them", async () => {
  await using scratch = await scratchFolder();
  const directory = join(scratch.path, "cluster");
  const [machine, receiver] = [machineFiles(directory, node), receiverFiles(directory, node)];
  await using processes = new AsyncDisposableStack();
  for (const { folder, pid } of [machine, receiver]) {
    await mkdir(folder, { recursive: true });
    await writeFile(pid, `${processes.use(await startQemuProcess(pid)).pid}\n`);
  }
  const left = async () => {
    await resumeForgotten({ directory, nodes: [] }, neverAborted);
    return [
      await isRunning(machine),
      await isRunning(receiver),
      ...(await readdir(join(directory, "machines"))),
    ];
  };
  {
    await using _ = await lockMachines(
      { environment: {}, clock: systemClock, progress: silentProgress, signal: neverAborted },
      directory,
    );
    expect(await left()).toEqual([true, true, "agent_0", "receiver-agent_0"]);
  }
  expect(await left()).toEqual([true, false, "agent_0"]);
});
