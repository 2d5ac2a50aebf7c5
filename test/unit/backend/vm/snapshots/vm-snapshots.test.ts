import { expect, test } from "bun:test";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  draftFolder,
  snapshotFolder,
  snapshotsFolder,
} from "../../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { createVmBackend } from "../../../../../src/backend/vm/vm-backend.ts";
import { silentProgress, systemClock } from "../../../../../src/system/runtime.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const never = new AbortController().signal;

/** The snapshots of a cluster in a state folder, with a complete snapshot `installed` and an unfinished one `torn`. */
async function openSnapshots() {
  const state = await scratchFolder();
  const directory = join(state.path, "cluster-e2e", "vm", "default-0123456789abcdef");
  for (const folder of [snapshotFolder(directory, "installed"), draftFolder(directory, "torn")]) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(join(folder, "memory"), "x");
  }
  const environment = { XDG_STATE_HOME: state.path, PATH: "/nowhere" };
  const { snapshots } = createVmBackend({ environment, clock: systemClock, progress: silentProgress });
  const cluster = { id: "default", creationId: "0123456789abcdef", directory };
  return {
    ...state,
    remove: async (name: string) => snapshots!.delete(cluster, name, never),
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

test("a snapshot that doesn't exist is an error, and nothing is deleted", async () => {
  await using opened = await openSnapshots();
  expect((await failureOf(opened.remove("other"))).id).toBe("snapshot-not-found");
  expect(await opened.names()).toEqual([".torn", "installed"]);
});
