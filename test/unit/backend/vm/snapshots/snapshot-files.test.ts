import { expect, test } from "bun:test";
import { copyFailure, factsText, parseSnapshotFacts } from "../../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { machineNode } from "../../../../support/machine-node.ts";

const sha256 = "ab".repeat(32);
const facts = {
  createdAt: "2026-01-01T00:00:00.000Z",
  qemuVersion: "7.2.22",
  machines: { accelerator: "tcg", isSandboxed: true, memoryMegabytes: 768, cpus: 1 },
  files: { "master_0/disk.qcow2": { bytes: 1, sha256 }, "public_agent_12/memory": { bytes: 2, sha256 } },
} as const;
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
  for (const found of [undefined, null, [], "text", 1]) expect(parseSnapshotFacts(found)).toBeUndefined();
});

test.each(["ENOSPC", "EDQUOT"])("%s while files of a node are copied is an error that names it", (code) => {
  const error = Object.assign(new Error(code), { code });
  expect(copyFailure(error, machineNode({ role: "agent", index: 1 }), "restored")).toMatchObject({
    id: "capacity-lacking",
    message: "The disk is full: agent_1 cannot be restored.",
    hint: "Free some space, or delete a snapshot. Nothing was stopped.",
    cause: error,
  });
});
