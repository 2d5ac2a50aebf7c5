/** Which clusters of machines can't be saved, with real processes and scripted monitors in place of QEMU. */
import { expect, test } from "bun:test";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ClusterFacts, writeClusterFacts } from "../../../../src/backend/vm/cluster-facts.ts";
import { machineFiles } from "../../../../src/backend/vm/machines/machine-process.ts";
import { snapshotsFolder } from "../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { createVmBackend } from "../../../../src/backend/vm/vm-backend.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { machineNodes } from "../../../support/machine-node.ts";
import { startQemuProcess } from "../../../support/qemu-process.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { startMonitor } from "./scripted-monitor.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const creationId = "0123456789abcdef";
const machines = { accelerator: "tcg", isSandboxed: true, memoryMegabytes: 64, cpus: 1 } as const;
const nodes = machineNodes;

interface Given {
  /** The agent's state; absent: it doesn't run. */
  readonly state?: string;
  readonly machines?: ClusterFacts["machines"];
}

/** Tries to save a cluster of two machines. Resolves with the error and the snapshots that there are then. */
async function save(given: Given) {
  await using state = await scratchFolder();
  const directory = join(state.path, "cluster-e2e", "vm", `one-${creationId}`);
  await using stack = new AsyncDisposableStack();
  for (const [place, runState] of ["running", given.state].entries()) {
    const files = machineFiles(directory, nodes[place]!);
    await mkdir(files.folder, { recursive: true });
    if (runState === undefined) continue;
    const child = stack.use(await startQemuProcess(files.pid));
    await writeFile(files.pid, `${child.pid}\n`);
    stack.use(await startMonitor(files.folder, async () => Promise.resolve({ status: runState })));
  }
  const known = {
    variant: "oss",
    distribution: "debian-12",
    createdAt: undefined,
    createdBy: "2026.1.1",
  } as const;
  const counts = { master: 1, agent: 1, public_agent: 0 };
  await writeClusterFacts(directory, {
    clusterId: "one",
    creationId,
    ...known,
    counts,
    nodes,
    machines: given.machines,
  });
  const environment = { XDG_STATE_HOME: state.path, PATH: "/nowhere" };
  const backend = createVmBackend({ environment, clock: systemClock, progress: silentProgress });
  const failure = await failureOf(
    backend.local.snapshots.create(
      (await backend.find("one", neverAborted))!,
      "installed",
      neverAborted,
    ),
  );
  return { failure, snapshots: await readdir(snapshotsFolder(directory)).catch(() => []) };
}

test.each<[string, Given, object]>([
  [
    "a machine that is paused",
    { state: "paused", machines },
    {
      id: "machine-failed",
      message: 'Cluster "one" cannot be saved: agent_0 is paused.',
      hint: "Start its nodes, or restore another snapshot first.",
    },
  ],
  [
    "a machine that has ended",
    { machines },
    { id: "machine-failed", message: 'Cluster "one" cannot be saved: agent_0 does not run.' },
  ],
  [
    "a machine whose QEMU does not answer",
    { state: "", machines },
    {
      id: "machine-failed",
      message: 'Cluster "one" cannot be saved: agent_0 does not answer.',
      hint: "Restart agent_0 by force, or restore another snapshot first.",
    },
  ],
  [
    "machines of an earlier version of this program",
    { state: "running" },
    {
      id: "machine-failed",
      message: 'Cluster "one" was created by version 2026.1.1, which had no snapshots.',
      hint: "Create it again to save it.",
    },
  ],
  [
    "more memory than the disk has room for",
    { state: "running", machines: { ...machines, memoryMegabytes: 1e9 } },
    {
      id: "capacity-lacking",
      message: expect.stringMatching(/but 2097152\.[0-9] GB are required\.$/),
      hint: "Free some space, or delete a snapshot.",
    },
  ],
])(
  "a cluster with %s is not saved, and no part of a snapshot is left",
  async (_, given, expected) => {
    const { failure, snapshots } = await save(given);
    expect(failure).toMatchObject(expected);
    expect(snapshots).toEqual([]);
  },
);
