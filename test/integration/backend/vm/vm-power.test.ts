/** What the console of a node that was started again shows about it. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { openConsoleSink, readConsole } from "../../../../src/backend/vm/machines/console-sink.ts";
import { machineFiles } from "../../../../src/backend/vm/machines/machine-process.ts";
import { createVmBackend } from "../../../../src/backend/vm/vm-backend.ts";
import type { ClusterRecord, NodeRecord } from "../../../../src/model/cluster-record.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { machineNodes } from "../../../support/machine-node.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

test("a panic on a node's console is the reason why it does not come back, until QEMU starts again", async () => {
  await using scratch = await scratchFolder();
  const environment = { ...process.env, XDG_STATE_HOME: scratch.path };
  const runtime = { environment, clock: systemClock, progress: silentProgress };
  const { power } = createVmBackend(runtime).local;
  const directory = join(scratch.path, "cluster");
  const [node] = machineNodes;
  const cluster = { directory, nodes: machineNodes } as unknown as ClusterRecord;
  const files = machineFiles(directory, node!);
  const assertBoots = async (): Promise<void> =>
    power.assertBoots?.(cluster, node as unknown as NodeRecord);
  // Without a console, nothing is known.
  await assertBoots();
  await mkdir(files.folder, { recursive: true });
  await writeFile(files.console, "[    1.000000] Kernel panic - not syncing: No init found.\n");
  const failure = await failureOf(assertBoots());
  expect(failure).toMatchObject({ id: "machine-failed", facts: { node: "master_0" } });
  expect(failure.message).toBe("master_0 does not come back: its kernel panicked (No init found).");
  expect(failure.hint).toContain("logs");
  await using _ = await openConsoleSink(files.folder);
  await until("the start is on the console", async () =>
    (await readConsole(files.folder, 1_000)).endsWith("starts\n"),
  );
  await assertBoots();
});
