import { expect, test } from "bun:test";
import type { LocalPart, Templates } from "../../../../src/backend/contract.ts";
import { vmKind } from "../../../../src/backend/vm/vm-kind.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { runCommandLine } from "../../../support/run-command.ts";

/** Runs the command on a backend with these templates, of which those without a cluster are removed. */
async function run(words: string, records: Awaited<ReturnType<Templates["list"]>> = []) {
  const templates: Templates = {
    list: async () => records,
    remove: async (name) =>
      records
        .filter((each) => each.clusters.length === 0 && each.name === (name ?? each.name))
        .map((each) => each.name),
  };
  return runCommandLine(`templates ${words}`, {
    kind: vmKind,
    backend: { local: { templates } as unknown as LocalPart },
    nowMs: 0,
    columns: 120,
  });
}

const createdAt = new Date("2026-01-01T12:00:00.500Z");
const records = [
  {
    name: "a1",
    createdAt,
    sizeBytes: 2_000_001,
    clusters: ["one", "two"],
    machine: "4 CPUs",
    problem: undefined,
  },
  {
    name: "b2",
    createdAt: undefined,
    sizeBytes: 0,
    clusters: [],
    machine: undefined,
    problem: undefined,
  },
  {
    name: "c3",
    createdAt,
    sizeBytes: 1,
    clusters: [],
    machine: "2 CPUs",
    problem: "it has another QEMU",
  },
];

test("list shows the size, the clusters and the machine of each template", async () => {
  const { stdout, data, told } = await run("list", records);
  expect(stdout.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
    ["NAME", "CREATED", "SIZE", "USED BY", "MACHINE"],
    ["a1", "2026-01-01 12:00 UTC", "3 MB", "one, two", "4 CPUs"],
    ["b2", "–", "0 MB", "–", "damaged"],
    ["c3", "2026-01-01 12:00 UTC", "1 MB", "–", "2 CPUs; boots instead: it has another QEMU"],
  ]);
  expect({ data, told }).toEqual({ data: { templates: records }, told: [] });
});

test.each([
  ["remove", "b2\nc3", ["b2", "c3"]],
  ["remove c3", "c3", ["c3"]],
])("%s prints what was removed", async (words, stdout, removed) => {
  expect(await run(words, records)).toMatchObject({ stdout, data: { removed }, told: [] });
});

test.each([
  ["list", "There are no templates."],
  ["remove", "There are no unused templates."],
])("%s says if there are none", async (words, note) => {
  expect(await run(words)).toMatchObject({ stdout: "", told: [note] });
});

test("list takes no name", async () => {
  expect((await failureOf(run("list a1"))).message).toContain("NAME: list takes no name");
});
