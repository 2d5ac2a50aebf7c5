import { expect, test } from "bun:test";
import { restoreSnapshot } from "../../../src/cluster/snapshots.ts";
import type { Backend } from "../../../src/model/backend.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { recordingProgress } from "../../support/recording-progress.ts";

const { signal } = new AbortController();
const cluster = exampleCluster([], "oss");
const snapshot = { clusterId: cluster.id, name: "installed" };

test("without the cluster's key, a restore ends when the nodes run, and says so", async () => {
  const restored: string[] = [];
  const snapshots = { restore: async (_: unknown, name: string) => void restored.push(name) };
  const backend = { name: "container", find: async () => cluster, snapshots } as unknown as Backend<unknown>;
  const { progress, steps, told } = recordingProgress();
  const runtime = { environment: {}, clock: systemClock, progress };
  expect(await restoreSnapshot(backend, snapshot, runtime, signal)).toBe(cluster);
  expect([restored, steps]).toEqual([["installed"], []]);
  expect(told).toEqual(["This machine doesn't have the cluster's key, so nobody waits for its nodes."]);
});

test("clusters of a backend without snapshots can't be restored", async () => {
  const backend = { name: "cloud", find: async () => cluster } as unknown as Backend<unknown>;
  const runtime = { environment: {}, clock: systemClock, progress: recordingProgress().progress };
  expect(await failureOf(restoreSnapshot(backend, snapshot, runtime, signal))).toMatchObject({ id: "bad-usage" });
});
