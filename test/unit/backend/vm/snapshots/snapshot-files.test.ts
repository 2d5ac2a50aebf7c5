import { mkdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  assertAllThere,
  copyFailure,
  describeContents,
  factsPath,
  factsText,
  parseSnapshotFacts,
  savedFiles,
  usedBytes,
} from "../../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { machineNode } from "../../../../support/machine-node.ts";

const sha256 = "ab".repeat(32);
const facts = {
  createdAt: "2026-01-01T00:00:00.000Z",
  qemuVersion: "7.2.22",
  machines: { accelerator: "tcg", isSandboxed: true, memoryMegabytes: 768, cpus: 1 },
  files: {
    "master_0/disk.qcow2": { bytes: 1, sha256 },
    "public_agent_12/memory": { bytes: 2, sha256 },
  },
} as const;
const filesOf = (...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [`agent_0/${name}`, { bytes: 0, sha256 }]));
const written = JSON.parse(factsText(facts)) as object;

test("what was written is read", () => {
  expect(parseSnapshotFacts(written)).toEqual({ schemaVersion: 1, ...facts });
});

test.each([
  { schemaVersion: 2 },
  { createdAt: "yesterday" },
  { qemuVersion: "7" },
  { qemuVersion: undefined },
  { machines: { ...facts.machines, accelerator: "tcg -incoming exec:id" } },
  { machines: { ...facts.machines, memoryMegabytes: -1 } },
  { machines: { ...facts.machines, cpus: "1" } },
  { files: { "../../../../.ssh/id_ed25519": { bytes: 1, sha256 } } },
  { files: { "master_0/disk.qcow2": { bytes: "1", sha256 } } },
  { files: "none" },
])("anything else is damaged: %j", (change) => {
  expect(parseSnapshotFacts({ ...written, ...change })).toBeUndefined();
});

test("a file that is no mapping is damaged", () => {
  for (const found of [undefined, null, [], "text", 1])
    expect(parseSnapshotFacts(found)).toBeUndefined();
});

test.each(["ENOSPC", "EDQUOT"])(
  "%s while files of a node are copied is an error that names it",
  (code) => {
    const error = Object.assign(new Error(code), { code });
    expect(copyFailure(error, machineNode({ role: "agent", index: 1 }), "restored")).toMatchObject({
      id: "capacity-lacking",
      message: "The disk is full: agent_1 cannot be restored.",
      hint: "Free some space, or delete a snapshot. Nothing was stopped.",
      cause: error,
    });
  },
);

test("only a node that is restored was not stopped", () => {
  const error = Object.assign(new Error("full"), { code: "ENOSPC" });
  expect(copyFailure(error, machineNode(), "saved")).toMatchObject({
    hint: "Free some space, or delete a snapshot.",
  });
  expect(copyFailure(new Error("other"), machineNode(), "saved")).toEqual(new Error("other"));
});

test("what stands for memory has no empty blocks, what stands for a disk is the disk, and holes take no space", async () => {
  await using folder = await scratchFolder();
  const paths = ["memory", "disk.qcow2"].map((name) => join(folder.path, "agent_0", name));
  await mkdir(join(folder.path, "agent_0"));
  for (const path of paths) {
    await writeFile(path, "x".repeat(10_000));
    await truncate(path, 1_000_000);
  }
  const [memory, disk] = await Promise.all(
    paths.map(async (path) => describeContents(path, neverAborted)),
  );
  expect([memory!.bytes, disk!.bytes]).toEqual([65_540, 1_000_000]);
  expect(await usedBytes(folder.path)).toBeWithin(16_000, 200_000);
  expect(await usedBytes(join(folder.path, "nowhere"))).toBe(0);
  const aborted = AbortSignal.abort(new Error("interrupted"));
  expect((await failureOf(describeContents(paths[0]!, aborted))).message).toBe("interrupted");
});

test.each<[string, (folder: string) => Promise<void>]>([
  ["its snapshot.json cannot be read", async (folder) => rm(factsPath(folder))],
  ["agent_0/memory is missing", async (folder) => rm(join(folder, "agent_0/memory"))],
  ["agent_0/extra is missing", async (folder) => rm(join(folder, "agent_0/extra"))],
  [
    "agent_0/state is missing",
    async (folder) =>
      writeFile(factsPath(folder), factsText({ ...facts, files: filesOf("disk.qcow2", "memory") })),
  ],
])("a snapshot is not saved as a file if %s", async (why, change) => {
  await using scratch = await scratchFolder();
  const node = machineNode({ role: "agent" });
  const { disk, memory, state } = savedFiles(node);
  await mkdir(join(scratch.path, "agent_0"));
  for (const path of [disk, memory, state, "agent_0/extra"])
    await writeFile(join(scratch.path, path), "");
  const files = filesOf("disk.qcow2", "memory", "state", "extra");
  await writeFile(factsPath(scratch.path), factsText({ ...facts, files }));
  const cluster = { id: "one", creationId: "0123456789abcdef", directory: scratch.path };
  const snapshot = { name: "installed", folder: scratch.path, isComplete: true };
  const checked = async () =>
    assertAllThere(cluster, { facts: { clusterId: "one", nodes: [node] }, snapshot }, neverAborted);
  expect(await checked()).toMatchObject({ files });
  await change(scratch.path);
  expect(await failureOf(checked())).toMatchObject({
    id: "snapshot-unusable",
    message: `The snapshot "installed" of cluster "one" is damaged: ${why}.`,
  });
});
