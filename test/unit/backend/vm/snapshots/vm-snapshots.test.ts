import { expect, test } from "bun:test";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  draftFolder,
  factsPath,
  factsText,
  findSnapshot,
  snapshotFolder,
  snapshotsFolder,
} from "../../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { createVmBackend } from "../../../../../src/backend/vm/vm-backend.ts";
import type { ClusterRecord } from "../../../../../src/model/cluster-record.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

/** The snapshots of a cluster in a state folder, with a complete snapshot `installed` and an unfinished one `torn`. */
async function openSnapshots() {
  const state = await scratchFolder();
  const directory = join(state.path, "cluster-e2e", "vm", "default-0123456789abcdef");
  for (const folder of [snapshotFolder(directory, "installed"), draftFolder(directory, "torn")]) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(join(folder, "memory"), "x");
  }
  const environment = { XDG_STATE_HOME: state.path, PATH: "/nowhere" };
  const { snapshots } = createVmBackend({
    environment,
    clock: systemClock,
    progress: silentProgress,
  }).local;
  const cluster = { id: "default", creationId: "0123456789abcdef", directory };
  return {
    ...state,
    directory,
    cluster,
    snapshots,
    list: async () => snapshots.list(cluster, neverAborted),
    remove: async (name: string) => snapshots.delete(cluster, name, neverAborted),
    names: async () => (await readdir(snapshotsFolder(directory))).toSorted(),
  };
}

test.each([
  ["installed", [".torn"]],
  ["torn", ["installed"]],
])("the snapshot %s, complete or not, is deleted", async (name, rest) => {
  await using opened = await openSnapshots();
  await opened.remove(name);
  expect(await opened.names()).toEqual(rest);
});

test("snapshots are listed by age; one whose facts are missing or unfinished is incomplete, and comes first", async () => {
  await using opened = await openSnapshots();
  const machines = { accelerator: "tcg", isSandboxed: true, memoryMegabytes: 64, cpus: 1 } as const;
  for (const [name, createdAt] of [
    ["newer", "2026-01-02T00:00:00.000Z"],
    ["older", "2026-01-01T00:00:00.000Z"],
    [".unfinished", "2025-12-31T00:00:00.000Z"],
  ] as const) {
    const folder = join(snapshotsFolder(opened.directory), name);
    await mkdir(folder);
    await writeFile(
      factsPath(folder),
      factsText({ createdAt, qemuVersion: "7.2.22", machines, files: {} }),
    );
  }
  expect((await opened.list()).map(({ name, isComplete }) => [name, isComplete])).toEqual([
    ["torn", false],
    ["installed", false],
    ["unfinished", false],
    ["older", true],
    ["newer", true],
  ]);
});

test("a snapshot is deleted even if an earlier deletion of its name was cut short", async () => {
  await using opened = await openSnapshots();
  const rest = draftFolder(opened.directory, "installed");
  await mkdir(rest);
  await writeFile(join(rest, "memory"), "x");
  await opened.remove("installed");
  expect(await opened.names()).toEqual([".torn"]);
});

test("a snapshot that doesn't exist is an error, and nothing is deleted", async () => {
  await using opened = await openSnapshots();
  expect((await failureOf(opened.remove("other"))).id).toBe("snapshot-not-found");
  expect(await opened.names()).toEqual([".torn", "installed"]);
});

test("only a complete snapshot is used, and if there is none of a name, the error lists those that exist", async () => {
  await using opened = await openSnapshots();
  const { cluster, directory } = opened;
  await mkdir(join(snapshotsFolder(directory), "lost+found"));
  await mkdir(draftFolder(directory, "installed"));
  expect(await findSnapshot(cluster, "installed")).toMatchObject({
    folder: snapshotFolder(directory, "installed"),
  });
  expect(await failureOf(findSnapshot(cluster, "torn"))).toMatchObject({ id: "snapshot-unusable" });
  expect(await failureOf(findSnapshot(cluster, "other"))).toMatchObject({
    id: "snapshot-not-found",
    hint: "It has: installed, torn.",
  });
  const none = { ...cluster, directory: join(directory, "none") };
  expect((await failureOf(findSnapshot(none, "other"))).hint).toBe("It has no snapshots.");
});

test("a copy needs an id that is free, whether it is made of a snapshot or of a file", async () => {
  await using opened = await openSnapshots();
  const { cluster, directory, snapshots } = opened;
  await mkdir(join(directory, "machines"));
  const source = cluster as unknown as ClusterRecord;
  const file = { location: { path: "/nowhere", shown: "FILE" } };
  const ofSnapshot = snapshots.planCopy(
    { clusterId: "default", source, snapshot: "installed" },
    neverAborted,
  );
  expect((await failureOf(ofSnapshot)).id).toBe("cluster-exists");
  const ofFile = snapshots.planCopy({ clusterId: "default", file }, neverAborted);
  expect((await failureOf(ofFile)).id).toBe("cluster-exists");
});
