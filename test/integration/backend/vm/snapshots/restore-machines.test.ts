/** How machines continue from a snapshot, with scripted monitors and without QEMU. */

import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { expect, test } from "bun:test";
import { type ClusterFacts, readCluster } from "../../../../../src/backend/vm/cluster-facts.ts";
import { machineLife } from "../../../../../src/backend/vm/machines/machine-life.ts";
import { machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import { removeSockets } from "../../../../../src/backend/vm/machines/private-network.ts";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import type { Qemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { restoreMachines } from "../../../../../src/backend/vm/snapshots/restore-machines.ts";
import { savedFiles } from "../../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { rejectionOf } from "../../../../support/failure-of.ts";
import { machineNode } from "../../../../support/machine-node.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { startMonitor } from "../scripted-monitor.ts";

const node = machineNode();
const machines = { accelerator: "tcg", isSandboxed: false, memoryMegabytes: 512, cpus: 1 } as const;
const facts: ClusterFacts = {
  schemaVersion: 1,
  clusterId: "one",
  creationId: "0123456789abcdef",
  variant: "oss",
  distribution: "debian-12",
  counts: { master: 1, agent: 0, public_agent: 0 },
  createdAt: undefined,
  createdBy: "test",
  bootId: "an earlier one",
  nodes: [node],
};

interface Given {
  /** The states of a QEMU that loads the memory, in turn; the last one stays. Absent: it ends at once. */
  readonly states?: readonly string[];
  /** What it writes to its log. */
  readonly said?: string;
  readonly hasVariables?: boolean;
  /** Why it doesn't start. */
  readonly refuses?: string;
}

/** Restores a cluster of one machine. The clock only moves in pauses: a minute in each. */
async function restore({ states, said = "", hasVariables = false, refuses }: Given) {
  const scratch = await scratchFolder();
  const [directory, folder] = [
    join(scratch.path, `one-${facts.creationId}`),
    join(scratch.path, "snapshot"),
  ];
  const [files, saved] = [machineFiles(directory, node), savedFiles(node)];
  await mkdir(files.folder, { recursive: true });
  await mkdir(dirname(join(folder, saved.disk)), { recursive: true });
  for (const [path, text] of [
    [files.disk, "the disk of now"],
    [join(folder, saved.disk), "the saved disk"],
    [files.flash.variables, "the variables of now"],
    // What a QEMU leaves that was killed.
    [files.started, ""],
    [files.pid, "4194305\n"],
  ] as const)
    await writeFile(path, text);
  if (hasVariables) await writeFile(join(folder, saved.variables), "the saved variables");
  const asked: string[] = [];
  const look = (): object => {
    const looks = asked.filter((each) => each === "query-status").length;
    return { status: states?.[Math.min(looks, states.length) - 1] };
  };
  await using stack = new AsyncDisposableStack();
  const atStart: string[] = [];
  const run = async () => {
    atStart.push(...(await readdir(files.folder)));
    await writeFile(files.qemuLog, said);
    if (refuses !== undefined) return { status: 1, stdout: "", stderr: refuses };
    if (states !== undefined) {
      const answer = async (execute: string): Promise<object> => {
        asked.push(execute);
        return Promise.resolve(execute === "query-status" ? look() : {});
      };
      stack.use(await startMonitor(files.folder, async ({ execute }) => answer(execute)));
    }
    return { status: 0, stdout: "", stderr: "" };
  };
  const qemu = { architecture: architectureOf("x64"), run } as unknown as Qemu;
  const time = { ms: 0 };
  const clock = { now: () => time.ms, sleep: async () => void (time.ms += 60_000) };
  const fileFacts = { bytes: 0, sha256: "" };
  const known = { [saved.disk]: fileFacts, ...(hasVariables && { [saved.variables]: fileFacts }) };
  const rest = {
    schemaVersion: 1,
    createdAt: "2026-01-01T00:00:00.000Z",
    qemuVersion: "7.2.22",
    machines,
  } as const;
  const plan = { cluster: { directory, facts }, folder, saved: { ...rest, files: known }, clock };
  const failure = await rejectionOf(restoreMachines(qemu, plan, neverAborted));
  const sockets = await readFile(join(directory, "machines", "network", "sockets"), "utf8");
  const left = await readdir(sockets).catch(() => "gone");
  await removeSockets(directory);
  return {
    failure,
    asked,
    atStart,
    left,
    time,
    files,
    facts: (await readCluster(directory))?.facts,
    [Symbol.asyncDispose]: scratch[Symbol.asyncDispose],
  };
}

test("a machine gets its saved disk and variables, and continues once its memory is loaded", async () => {
  await using restored = await restore({
    states: ["inmigrate", "inmigrate", "paused"],
    hasVariables: true,
  });
  expect(restored.failure).toBeUndefined();
  const { disk, flash, pid } = restored.files;
  expect(restored.atStart).not.toContain(basename(pid));
  expect([await readFile(disk, "utf8"), await readFile(flash.variables, "utf8")]).toEqual([
    "the saved disk",
    "the saved variables",
  ]);
  expect(restored.asked.slice(0, 3)).toEqual([
    "migrate-set-capabilities",
    "migrate-incoming",
    "query-status",
  ]);
  expect(restored.asked.at(-1)).toBe("cont");
  expect(restored.left).toEqual([]);
  expect(restored.facts).toMatchObject({ machines });
  expect(restored.facts?.bootId).not.toBe(facts.bootId);
});

test("a machine whose snapshot has no variables keeps those that it has", async () => {
  await using restored = await restore({ states: ["postmigrate"] });
  expect(restored.failure).toBeUndefined();
  expect(await readFile(restored.files.flash.variables, "utf8")).toBe("the variables of now");
});

test.each([
  [
    "qemu-system-x86_64: warning: old\nqemu-system-x86_64: error: bad magic\nload failed\nbye\n",
    "bad magic; load failed",
  ],
  ["", "it ended"],
])(
  "a QEMU that ends while it loads the memory, after %j, is an error with the cause",
  async (said, why) => {
    await using restored = await restore({ said });
    expect(restored.failure).toMatchObject({
      id: "engine-failed",
      message: expect.stringMatching(new RegExp(`master_0 .*: ${why}\\.$`)),
    });
  },
);

test("machines that cannot be restored count as stopped, so that they can be started", async () => {
  await using restored = await restore({ refuses: "qemu: cannot set up guest memory 'memory'" });
  expect(restored.failure).toMatchObject({ id: "capacity-lacking" });
  expect(await machineLife(restored.files)).toBe("ended");
});

test("a QEMU that loads the memory for ten minutes is not waited for any longer", async () => {
  await using restored = await restore({ states: ["inmigrate"] });
  expect(restored.failure).toMatchObject({
    id: "deadline-passed",
    message: expect.stringContaining("master_0"),
  });
  expect(restored.time.ms).toBe(600_000);
});
