/** What a file may say about its cluster of virtual machines. */
import { expect, test } from "bun:test";
import { cpus } from "node:os";
import {
  describeCpu,
  keysPart,
  readVmFacts,
} from "../../../../../src/backend/vm/files/file-facts.ts";

type Facts = Readonly<Record<string, unknown>>;

const sum = "ab".repeat(32);
const base = { format: "raw", bytes: 5, sha256: sum };
const top = { format: "qcow2", bytes: 6, sha256: sum, below: 0 };
const facts = {
  clusterId: "one",
  snapshot: "installed",
  createdAt: "2026-01-02T03:04:05.000Z",
  variant: "oss",
  distribution: "debian-12",
  counts: { master: 1, agent: 1, public_agent: 0 },
  architecture: "x86_64",
  qemuVersion: "7.2.22",
  cpu: "Some CPU (abcdef01)",
  machines: { accelerator: "tcg", isSandboxed: true, memoryMegabytes: 512, cpus: 1 },
  instanceIds: ["vm-1", "vm-2"],
  layers: [base, top],
  below: { "master_0/disk.qcow2": 1, "agent_0/disk.qcow2": 1 },
};
const part = (name: string, more: object = {}) => ({ name, bytes: 1, sha256: sum, ...more });
const filesOf = (node: string) =>
  ["disk.qcow2", "memory", "state"].map((file) => part(`${node}/${file}`));
const [keys, layer] = [part(keysPart), part("layer-1", { bytes: top.bytes })];
const parts = [keys, layer, ...filesOf("master_0"), ...filesOf("agent_0")];

const readFacts = (change: Facts, given: readonly ReturnType<typeof part>[] = parts) =>
  readVmFacts({
    shown: "FILE",
    manifest: {
      backend: "vm",
      createdBy: "1",
      sha256: sum,
      facts: { ...facts, ...change },
      parts: given,
    },
  });

test("the image below the others and a machine's firmware may be in the file or not", () => {
  expect(readFacts({})).toMatchObject(facts);
  const [master, agent] = [filesOf("master_0"), filesOf("agent_0")];
  const more = ["firmware-variables.qcow2", "firmware.qcow2"].map((file) =>
    part(`master_0/${file}`),
  );
  const all = [keys, part("layer-0", { bytes: base.bytes }), layer, ...master, ...more, ...agent];
  expect(readFacts({}, all)).toMatchObject(facts);
});

test.each(parts.map(({ name }, place) => [name, place] as const))(
  "a file without %s, or with two, is damaged",
  (_, at) => {
    const refusal = "its parts are not those of its nodes";
    expect(() => readFacts({}, parts.toSpliced(at, 1))).toThrow(refusal);
    expect(() => readFacts({}, parts.toSpliced(at, 0, parts[at]!))).toThrow(refusal);
  },
);

test.each([
  ["in another order", parts.toSpliced(2, 2, parts[3]!, parts[2]!)],
  ["of another node", [...parts, ...filesOf("agent_1")]],
  ["of another node in front", [...filesOf("agent_1"), ...parts]],
  ["with a layer of another length", parts.with(1, { ...layer, bytes: 7 })],
  ["with a layer of another checksum", parts.with(1, { ...layer, sha256: "cd".repeat(32) })],
])("parts %s are damaged", (_, given) => {
  expect(() => readFacts({}, given)).toThrow("its parts are not those of its nodes");
});

const nodes = (agent: number) => ({
  counts: { master: 1, agent, public_agent: 0 },
  instanceIds: Array.from({ length: agent + 1 }, (_, place) => `vm-${place}`),
});
const layers = (count: number) => ({
  layers: Array.from({ length: count }, () => base),
  below: {},
});

test("a file may have one node or a thousand, and 64 layers", () => {
  expect(readFacts(nodes(0), [keys, layer, ...filesOf("master_0")]).instanceIds.length).toBe(1);
  const many = Array.from({ length: 999 }, (_, index) => filesOf(`agent_${index}`)).flat();
  expect(
    readFacts(nodes(999), [keys, layer, ...filesOf("master_0"), ...many]).instanceIds.length,
  ).toBe(1000);
  expect(readFacts(layers(64), [keys, ...parts.slice(2)]).layers.length).toBe(64);
});

test.each([
  ["no nodes", { counts: { master: 0, agent: 0, public_agent: 0 }, instanceIds: [] }],
  ["more than a thousand nodes", nodes(1000)],
  ["fewer instance ids than nodes", { instanceIds: ["vm-1"] }],
  ["a malformed instance id", { instanceIds: ["vm-1", "a b"] }],
  ["65 layers", layers(65)],
  ["a layer on itself", { layers: [base, { ...top, below: 1 }] }],
  ["a layer on a later one", { layers: [{ ...top, below: 1 }, top] }],
  ["a layer on none", { layers: [base, { ...top, below: -1 }] }],
  ["a raw layer on another one", { layers: [base, { ...top, format: "raw" }] }],
  ["a layer of negative length", { layers: [{ ...base, bytes: -1 }, top] }],
  ["a disk on a layer that there isn't", { below: { ...facts.below, "master_0/disk.qcow2": 2 } }],
  ["a version that QEMU cannot have", { qemuVersion: "7.2" }],
  ["an architecture that is no name", { architecture: "x86/64" }],
])("a file with %s is damaged", (_, change) => {
  expect(() => readFacts(change)).toThrow("its facts about the cluster are not valid");
});

test("the name of a processor becomes one short line", () => {
  expect(readFacts({ cpu: `a\nb${"x".repeat(1000)}` }).cpu).toBe(`a b${"x".repeat(197)}`);
});

test("this computer's processor is described by its name, and by a sum of what it can do", async () => {
  const described = await describeCpu();
  expect(described).toStartWith(cpus()[0]!.model.trim().split(/\s/)[0]!);
  expect(described).toMatch(/^\S.* \([0-9a-f]{8}\)$/);
  // The sum of nothing.
  if (process.platform === "linux") expect(described).not.toContain("e3b0c442");
});
