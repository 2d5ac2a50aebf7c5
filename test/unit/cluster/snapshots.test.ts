import type { Backend } from "../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { wireKey } from "../../support/ssh-options.ts";
import {
  createSnapshot,
  deleteSnapshot,
  listSnapshots,
  restoreSnapshot,
  saveSnapshot,
} from "../../../src/cluster/snapshots.ts";
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
  expect(told).toEqual(["This machine doesn't have the cluster's key, so it does not wait for logins to the nodes."]);
});

test("a restored node that accepts no login is tried again for five minutes", async () => {
  await using folder = await scratchFolder();
  const files = creationFiles(folder.path);
  // Nobody listens there, and no other test can take it.
  const port = 1;
  await writeFile(files.privateKey, generateKeyPair("login").privateKey, { mode: 0o600 });
  const hostKey = wireKey(generateKeyPair("host").publicKey);
  await createKnownHosts(files.knownHosts).pin("127.0.0.1", port, hostKey);
  const node = { id: "i-0", role: "master", index: 0, ssh: { host: "127.0.0.1", port, user: "root" } } as NodeRecord;
  const own = { ...exampleCluster([node], "oss"), directory: folder.path };
  const snapshots = { restore: async () => {}, holdsMemory: true };
  const backend = { name: "vm", find: async () => own, snapshots } as unknown as Backend<unknown>;
  const { progress, steps } = recordingProgress();
  const time = { ms: 0 };
  // A pause takes ten times as long on this clock, and almost none on the computer's.
  const clock = { now: () => time.ms, sleep: async (ms: number) => void (time.ms += 10 * ms) };
  const failure = await failureOf(restoreSnapshot(backend, snapshot, { environment: {}, clock, progress }, signal));
  expect(failure).toMatchObject({ id: "connection-failed" });
  expect(time.ms).toBeWithin(290_000, 310_000);
  expect(steps).toEqual(["Log in to the nodes: failed"]);
});

test("clusters of a backend without snapshots can't be restored", async () => {
  const backend = { name: "cloud", find: async () => cluster } as unknown as Backend<unknown>;
  const runtime = { environment: {}, clock: systemClock, progress: recordingProgress().progress };
  expect(await failureOf(restoreSnapshot(backend, snapshot, runtime, signal))).toMatchObject({ id: "bad-usage" });
});

test("the backend makes, lists, saves and deletes snapshots of the cluster that it finds", async () => {
  const calls: unknown[] = [];
  const call =
    (action: string) =>
    async (...[given, ...others]: readonly unknown[]) => {
      expect(given).toBe(cluster);
      calls.push([action, ...others.slice(0, -1)]);
      return [action];
    };
  const actions = { create: call("create"), list: call("list"), delete: call("delete") };
  const backendWith = (files: object) =>
    ({ name: "vm", find: async () => cluster, snapshots: { ...actions, ...files } }) as unknown as Backend<unknown>;
  const backend = backendWith({ files: { save: call("save") } });
  const file = { path: "/x" } as never;
  await createSnapshot(backend, snapshot, signal);
  expect((await listSnapshots(backend, cluster.id, signal)) as unknown).toEqual(["list"]);
  await saveSnapshot(backend, { ...snapshot, file }, signal);
  await deleteSnapshot(backend, snapshot, signal);
  expect(calls).toEqual([["create", "installed"], ["list"], ["save", "installed", file], ["delete", "installed"]]);
  expect(await failureOf(saveSnapshot(backendWith({}), { ...snapshot, file }, signal))).toMatchObject({
    id: "bad-usage",
    message: expect.stringContaining("not saved as files"),
  });
});
