import type { SnapshotRecord } from "../../../src/model/snapshot.ts";
import type { LocalPart, Snapshots } from "../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import type { SnapshotFile } from "../../../src/model/snapshot.ts";
import { vmKind } from "../../../src/backend/vm/vm-kind.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { runCommandLine } from "../../support/run-command.ts";

const cluster = { ...exampleCluster([], "oss"), directory: "/nowhere" };

/** Runs the command on a backend with these snapshots. Records what is called. */
async function run(
  words: string,
  { holdsMemory = false, records = [] as readonly SnapshotRecord[] } = {},
) {
  const calls: string[] = [];
  const act = (name: string) => async (_: unknown, snapshot: string) =>
    void calls.push(`${name} ${snapshot}`);
  const snapshots: Partial<Snapshots> = {
    holdsMemory,
    list: async () => records,
    create: act("create"),
    restore: act("restore"),
    delete: act("delete"),
  };
  const local = { snapshots } as unknown as LocalPart;
  const backend = { name: "container", find: async () => cluster, local } as const;
  const ran = await runCommandLine(`snapshot ${words} -c example`, {
    kind: containerKind,
    backend,
    nowMs: 0,
  });
  return { ...ran, calls };
}

test.each(["create", "restore", "delete"])("%s prints the snapshot's name", async (action) => {
  const ran = await run(`${action} installed`);
  expect(ran.calls).toEqual([`${action} installed`]);
  expect(ran).toMatchObject({ stdout: "installed", data: { snapshot: "installed" } });
});

test.each([
  [false, ["The nodes boot. Run the wait command to find out when the platform is ready."]],
  [true, []],
])(
  "after a restore, `wait` is suggested unless the snapshot holds memory (%p)",
  async (holdsMemory, notes) => {
    const { told } = await run("restore installed", { holdsMemory });
    expect(told.filter((text) => text.includes("boot"))).toEqual(notes);
  },
);

test("list shows time, size and state of each snapshot", async () => {
  const createdAt = new Date("2026-01-01T12:00:00.500Z");
  const records = [
    { name: "installed", createdAt, sizeBytes: 2_000_001, isComplete: true },
    { name: "torn", createdAt: undefined, sizeBytes: 0, isComplete: false },
  ];
  const { stdout, data, told } = await run("list", { records });
  expect(stdout.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
    ["NAME", "CREATED", "SIZE", "STATE"],
    ["installed", "2026-01-01 12:00 UTC", "3 MB", "complete"],
    ["torn", "–", "0 MB", "incomplete"],
  ]);
  expect(data).toEqual({ snapshots: records });
  expect(told).toEqual([]);
  expect((await run("list --quiet", { records })).stdout).toBe("installed\ntorn");
});

test("list says if there are none, and prints nothing on stdout", async () => {
  const { stdout, told, data } = await run("list");
  expect({ stdout, told, data }).toEqual({
    stdout: "",
    told: ['Cluster "example" has no snapshots.'],
    data: { snapshots: [] },
  });
});

test.each([
  ["list installed", "list takes no name"],
  ["create", "NAME: required by create"],
  ["restore", "NAME: required by restore"],
  ["create ../x", "NAME"],
])("snapshot %s is rejected", async (words, problem) => {
  const failure = await failureOf(run(words));
  expect(failure.message).toContain(problem);
});

test("save passes on where the file goes, and says that it is secret", async () => {
  const files: unknown[] = [];
  const snapshots = {
    save: async (_: unknown, name: string, file: SnapshotFile) => void files.push([name, file]),
  };
  const local = { snapshots };
  const backend = {
    name: "vm",
    find: async () => ({ ...cluster, backend: "vm" }),
    local,
  } as const;
  const save = async (words: string) =>
    runCommandLine(`snapshot ${words} -c example`, {
      kind: vmKind,
      backend: backend as never,
      nowMs: 0,
    });
  const ran = await save("save installed /tmp/cluster.zst --without-base");
  expect(files).toEqual([
    [
      "installed",
      { path: "/tmp/cluster.zst", withoutBase: true, replaces: false, encrypt: undefined },
    ],
  ]);
  expect(ran).toMatchObject({
    stdout: "/tmp/cluster.zst",
    data: { snapshot: "installed", file: "/tmp/cluster.zst" },
  });
  expect(ran.told).toEqual([expect.stringContaining("holds the secrets of the cluster")]);
  expect((await save("save installed /tmp/cluster.age --replace --recipient age1")).told).toEqual(
    [],
  );
  expect(files[1]).toEqual([
    "installed",
    expect.objectContaining({ replaces: true, encrypt: expect.any(Function) }),
  ]);
  for (const [words, problem] of [
    ["save installed", "FILE: required by save"],
    ["create installed /tmp/x", "FILE: only allowed with save"],
    ["list --without-base", "--without-base: only allowed with save"],
    ["list --recipient age1", "--recipient: only allowed with save"],
    ["list --replace", "--replace: only allowed with save"],
  ])
    expect((await failureOf(save(words!))).message).toContain(problem!);
});
