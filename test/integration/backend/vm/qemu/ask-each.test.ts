/** What users read while a QEMU doesn't answer, with monitors that stay silent. */
import { join } from "node:path";
import { expect, test } from "bun:test";
import { askEach } from "../../../../../src/backend/vm/qemu/ask-each.ts";
import { runOnMonitor } from "../../../../../src/backend/vm/qemu/monitor.ts";
import { nodeReference } from "../../../../../src/model/cluster-record.ts";
import { vmPower } from "../../../../../src/backend/vm/vm-power.ts";
import type { Qemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import type { ClusterRecord, NodeRecord } from "../../../../../src/model/cluster-record.ts";
import { machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { machineNodes } from "../../../../support/machine-node.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { startMonitor } from "../scripted-monitor.ts";

test("a command that pauses nodes names those whose QEMU is silent", async () => {
  await using scratch = await scratchFolder();
  const directory = join(scratch.path, "cluster");
  const interrupted = new AbortController();
  const notes: string[] = [];
  const note = (text: string): void => {
    notes.push(text);
    interrupted.abort(new Error("interrupted"));
  };
  const runtime = { environment: {}, clock: systemClock, progress: { ...silentProgress, note } };
  await using _monitors = new AsyncDisposableStack();
  for (const node of machineNodes)
    _monitors.use(
      await startMonitor(machineFiles(directory, node).folder, async () =>
        node.role === "master" ? {} : undefined,
      ),
    );
  const cluster = { directory } as unknown as ClusterRecord;
  const nodes = machineNodes as unknown as readonly NodeRecord[];
  const { pause } = vmPower({} as Qemu, runtime);
  expect((await failureOf(pause(cluster, nodes, interrupted.signal))).message).toBe("interrupted");
  expect(notes).toEqual(["Waiting for QEMU to answer for agent_0."]);
});

test("a QEMU that has not answered in time is an error with the way out", async () => {
  await using scratch = await scratchFolder();
  await using _ = await startMonitor(scratch.path, async () => undefined);
  const ask = async (): Promise<unknown> =>
    runOnMonitor(scratch.path, [{ execute: "cont" }], neverAborted, 50);
  const [node] = machineNodes;
  const failure = await failureOf(askEach({ progress: silentProgress }, [node!], ask));
  expect(failure).toMatchObject({
    id: "engine-failed",
    message: expect.stringContaining("it does not answer"),
    hint: expect.stringMatching(new RegExp(`stop ${nodeReference(node!)} with .*force`)),
  });
});
