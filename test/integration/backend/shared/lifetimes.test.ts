/** Clusters on this computer whose time is over. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { removeExpired } from "../../../../src/backend/shared/lifetimes.ts";
import { ClusterError } from "../../../../src/errors.ts";
import type { ClusterRecord } from "../../../../src/model/cluster-record.ts";
import {
  beginCreation,
  creationDirectory,
  creationFiles,
  endCreation,
} from "../../../../src/store/creation-folder.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

const creationId = "0123456789abcdef";
const nowMs = Date.parse("2026-01-01T00:00:00Z");

/** Clusters that end this long after now. Those that are removed are in `removed`. */
async function openClusters(
  endsMs: Readonly<Record<string, number>>,
  failures: Readonly<Record<string, Error>> = {},
  onRemoval = (): void => {},
) {
  const folder = await scratchFolder();
  const clusters = Object.entries(endsMs).map(([id, ms]): ClusterRecord => ({
    ...exampleCluster([], "oss"),
    id,
    directory: creationDirectory(folder.path, id, creationId),
    expiresAt: new Date(nowMs + ms),
  }));
  const { progress, told } = recordingProgress();
  const removed: string[] = [];
  const remove = async ({ id }: { readonly id: string }): Promise<void> => {
    onRemoval();
    if (failures[id] !== undefined) throw failures[id];
    removed.push(id);
  };
  const clock = { now: () => nowMs, sleep: async () => {} };
  const runtime = { clock, progress, environment: { PATH: folder.path } };
  return {
    clusters,
    told,
    removed,
    run: async (signal = neverAborted) => removeExpired({ ...runtime, signal }, clusters, remove),
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

test("what is over is removed, and what can't be removed is named with the reason", async () => {
  const failures = { stuck: new ClusterError("engine-failed", "The engine hangs.") };
  await using opened = await openClusters({ over: 0, later: 1, stuck: -60_000 }, failures);
  await opened.run();
  expect(opened.removed).toEqual(["over"]);
  expect(opened.told.toSorted()).toEqual([
    expect.stringMatching(
      /^Cannot remove what is left of cluster "stuck", which ended .*: The engine hangs\.$/,
    ),
    expect.stringMatching(/^Removed what is left of cluster "over", which ended .*\.$/),
  ]);
});

test("kept logins to it are closed, and its key is deleted", async () => {
  await using opened = await openClusters({ over: 0 });
  const [{ directory }] = opened.clusters as [ClusterRecord];
  await beginCreation(directory, "over", creationId);
  await endCreation(directory, "finished");
  const { privateKey } = creationFiles(directory);
  await writeFile(privateKey, "");
  const socket = join(directory, "master-0123456789abcdef");
  const server = createServer().listen(socket);
  await until("there is a socket", () => existsSync(socket));
  await opened.run();
  expect([socket, privateKey].filter((path) => existsSync(path))).toEqual([]);
  server.close();
});

test("a cluster whose creation is under way is left to it", async () => {
  await using opened = await openClusters({ over: 0 });
  const [{ directory }] = opened.clusters as [ClusterRecord];
  await beginCreation(directory, "over", creationId);
  await opened.run();
  expect(opened.removed).toEqual([]);
});

test("a bug is not taken for a cluster that can't be removed", async () => {
  const bug = new TypeError("x");
  await using opened = await openClusters({ over: 0 }, { over: bug });
  expect((await failureOf(opened.run())) as Error).toBe(bug);
  expect(opened.told).toEqual([]);
});

test("an interrupt is not taken for one either", async () => {
  const interrupt = new AbortController();
  const reason = new Error("interrupted");
  const failures = { over: new ClusterError("engine-failed", "It was cut off.") };
  await using opened = await openClusters({ over: 0 }, failures, () => interrupt.abort(reason));
  expect((await failureOf(opened.run(interrupt.signal))) as Error).toBe(reason);
  expect(opened.told).toEqual([]);
});
