import type { Admission } from "../../../../src/backend/admission.ts";
import { expect, test } from "bun:test";
import { cloudKind } from "../../../../src/backend/cloud/cloud-kind.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { runCommandLine } from "../../../support/run-command.ts";

/** Runs the command on a backend that admits these ranges. Records what is called. */
async function run(words: string, ranges: Awaited<ReturnType<Admission["list"]>> = []) {
  const calls: unknown[] = [];
  const admission: Admission = {
    list: async () => ranges,
    admit: async (_, { range }) => {
      calls.push(["admit", range]);
      return range ?? "192.0.2.7/32";
    },
    remove: async (_, range) => {
      calls.push(["remove", range]);
      return range;
    },
  };
  const cluster = exampleCluster([], "oss");
  const listAll = async () => ({ clusters: [], unreachable: [] });
  const cloud = { admission, listAll };
  const backend = { name: "cloud", find: async () => cluster, cloud } as const;
  const ran = await runCommandLine(`admit ${words}-c example`, {
    kind: cloudKind,
    backend,
    nowMs: 0,
  });
  return { ...ran, calls };
}

test.each([
  ["", "192.0.2.7/32", ["admit", undefined]],
  ["192.0.2.0/24 ", "192.0.2.0/24", ["admit", "192.0.2.0/24"]],
  ["--remove 192.0.2.0/24 ", "192.0.2.0/24", ["remove", "192.0.2.0/24"]],
])("admit %s prints the range %s", async (words, range, call) => {
  const { stdout, calls } = await run(words);
  expect(stdout).toBe(range);
  expect(calls).toEqual([call]);
});

test("a list shows each range with its ports, or says that there is none", async () => {
  const ranges = [{ range: "192.0.2.0/24", ports: ["22", "80"] }];
  const listed = await run("--list ", ranges);
  expect(listed.stdout.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
    ["CIDR", "PORTS"],
    ["192.0.2.0/24", "22, 80"],
  ]);
  expect(listed).toMatchObject({ data: { ranges }, told: [], calls: [] });
  expect(await run("--list ")).toMatchObject({
    stdout: "",
    told: ['No address is admitted to cluster "example".'],
  });
});

test.each([
  ["192.0.2.0/24 --list ", "CIDR and --list: cannot be combined"],
  ["--list --remove 192.0.2.0/24 ", "--list and --remove: cannot be combined"],
  [
    "192.0.2.0/24 --list --remove 192.0.2.0/24 ",
    "CIDR and --list and --remove: cannot be combined",
  ],
])("admit %s is rejected", async (words, problem) => {
  expect((await failureOf(run(words))).message).toContain(problem);
});
