import { mkdir, writeFile } from "node:fs/promises";
import { expect, test } from "bun:test";
import { type MachineLife } from "../../../../src/backend/vm/machines/machine-life.ts";
import { machineFiles } from "../../../../src/backend/vm/machines/machine-process.ts";
import { observeCluster } from "../../../../src/backend/vm/records.ts";
import { readBootId } from "../../../../src/system/processes/process-identity.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { stored, calm, observed } from "./machine-cluster.ts";

test("a cluster's state is that of its machines", () => {
  expect(observed(["running", "running"])).toMatchObject({
    state: "running",
    region: undefined,
    backend: "vm",
  });
  expect(observed(["running", "unstarted"]).state).toBe("starting");
  expect(observed(["running", "ended"]).state).toBe("incomplete");
  expect(observed(["killed", "ended"]).state).toBe("stopped");
  expect(observed(["paused", "paused"]).state).toBe("incomplete");
});

test("why a machine ended is told apart", () => {
  const reasons = (lives: readonly MachineLife[], fate = calm) =>
    observed(lives, fate).nodes.map(({ stateReason }) => stateReason);
  expect(reasons(["ended", "killed"])).toEqual([
    "the machine powered off",
    "its QEMU was killed, perhaps because memory ran out",
  ]);
  const restarted = { isRestarted: true, isAbandoned: false };
  expect(reasons(["running", "killed"], restarted)).toEqual([
    undefined,
    "this computer has restarted since",
  ]);
});

test.each([
  ["another", "this computer has restarted since"],
  ["this", "its QEMU was killed, perhaps because memory ran out"],
  ["no known", "its QEMU was killed, perhaps because memory ran out"],
])(
  "a machine that %s start of this computer saw, and that is gone: %s",
  async (start, stateReason) => {
    await using folder = await scratchFolder();
    for (const each of stored.facts.nodes) {
      const files = machineFiles(folder.path, each);
      await mkdir(files.folder, { recursive: true });
      await writeFile(files.started, "");
      await writeFile(files.pid, "4194305\n");
    }
    const bootId = { another: "another", this: await readBootId() }[start];
    const { nodes } = await observeCluster({
      directory: folder.path,
      facts: { ...stored.facts, bootId },
    });
    expect(nodes.map((each) => each.stateReason)).toEqual([stateReason, stateReason]);
  },
);

test("what a create that was killed had not started is not said to start", () => {
  const { state, nodes } = observed(["running", "unstarted"], {
    isRestarted: false,
    isAbandoned: true,
  });
  expect(state).toBe("incomplete");
  expect(nodes[1]).toMatchObject({
    state: "ended",
    stateReason: "the machine was never started: its create was interrupted",
  });
});
