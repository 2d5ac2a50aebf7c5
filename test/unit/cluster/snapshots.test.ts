import type { Backend } from "../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import { rm, writeFile } from "node:fs/promises";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { readEvents } from "../../../src/store/events.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { wireKey } from "../../support/ssh-options.ts";
import {
  createSnapshot,
  deleteSnapshot,
  listSnapshots,
  restoreSnapshot,
  saveSnapshot,
} from "../../../src/cluster/snapshots.ts";
import { ClusterError } from "../../../src/errors.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { recordingProgress } from "../../support/recording-progress.ts";

const { signal } = new AbortController();
const cluster = exampleCluster([], "oss");
const recorder = { clock: systemClock, progress: silentProgress };
const snapshot = { clusterId: cluster.id, name: "installed" };

test("without the cluster's key, a restore ends when the nodes run, and says so", async () => {
  const restored: string[] = [];
  const snapshots = { restore: async (_: unknown, name: string) => void restored.push(name) };
  const backend = {
    name: "container",
    find: async () => cluster,
    local: { snapshots },
  } as unknown as Backend<unknown>;
  const { progress, steps, told } = recordingProgress();
  const runtime = { environment: {}, clock: systemClock, progress };
  expect(await restoreSnapshot({ ...runtime, signal }, backend, snapshot)).toBe(cluster);
  expect([restored, steps]).toEqual([["installed"], []]);
  expect(told).toEqual([
    "This computer doesn't have the cluster's key, so it does not wait for logins to the nodes.",
  ]);
});

test("a restore names the nodes that it puts back, for those who watch them", async () => {
  await using folder = await scratchFolder();
  const node = { id: "0", role: "agent", index: 0, state: "running" } as NodeRecord;
  const own = { ...exampleCluster([node], "oss"), directory: folder.path };
  const backend = {
    name: "container",
    find: async () => own,
    local: { snapshots: { restore: async () => {} } },
  } as unknown as Backend<unknown>;
  const work = { environment: {}, clock: systemClock, progress: silentProgress, signal };
  await restoreSnapshot(work, backend, snapshot);
  const event = { kind: "snapshot", action: "restore", name: "installed", nodes: ["agent_0"] };
  expect(await readEvents(folder.path)).toMatchObject([
    { ...event, course: "begun" },
    { ...event, course: "done" },
  ]);
});

/** Restores a snapshot of a node on which nobody listens. `onPause` gets the key's path at each pause. */
async function restoreSilentNode(
  find: (own: ClusterRecord) => ClusterRecord | undefined,
  onPause: (key: string) => Promise<void>,
) {
  await using folder = await scratchFolder();
  const files = creationFiles(folder.path);
  // Nobody listens there, and no other test can take it.
  const port = 1;
  await writeFile(files.privateKey, generateKeyPair("login").privateKey, { mode: 0o600 });
  const hostKey = wireKey(generateKeyPair("host").publicKey);
  await createKnownHosts(files.knownHosts).pin("127.0.0.1", port, hostKey);
  const node = {
    id: "i-0",
    role: "master",
    index: 0,
    ssh: { host: "127.0.0.1", port, user: "root" },
  } as NodeRecord;
  const own = { ...exampleCluster([node], "oss"), directory: folder.path };
  const snapshots = { restore: async () => {}, holdsMemory: true };
  const backend = {
    name: "vm",
    find: async () => find(own),
    local: { snapshots, removeExpired: async () => {} },
  } as unknown as Backend<unknown>;
  const { progress, steps } = recordingProgress();
  const time = { ms: 0 };
  const sleep = async (ms: number): Promise<void> => {
    // A pause takes ten times as long on this clock, and almost none on the computer's.
    time.ms += 10 * ms;
    await onPause(files.privateKey);
  };
  const clock = { now: () => time.ms, sleep };
  const failure = await failureOf(
    restoreSnapshot({ environment: {}, clock, progress, signal }, backend, snapshot),
  );
  expect(steps).toEqual(["Log in to the nodes: failed"]);
  return { failure, passedMs: time.ms };
}

test("a restored node that accepts no login is tried again for five minutes", async () => {
  const { failure, passedMs } = await restoreSilentNode(
    (own) => own,
    async () => {},
  );
  expect(failure).toMatchObject({ id: "connection-failed" });
  expect(passedMs).toBeWithin(290_000, 310_000);
});

test.each([
  [true, "cluster-not-found"],
  [false, "key-missing"],
] as const)(
  "if the key vanishes during a restore, with the cluster: %p, that is %s",
  async (isDestroyed, id) => {
    const state = { isGone: false };
    const { failure } = await restoreSilentNode(
      (own) => (state.isGone ? undefined : own),
      async (key) => {
        await rm(key, { force: true });
        state.isGone = isDestroyed;
      },
    );
    expect(failure).toMatchObject({ id });
  },
);

const noAnswer = async (): Promise<undefined> =>
  Promise.reject(new ClusterError("engine-failed", "no answer"));

test.each<[string, () => Promise<ClusterRecord | undefined>, string]>([
  ["gone", async () => undefined, "cluster-not-found"],
  ["there", async () => cluster, "machine-failed"],
  ["unknown", noAnswer, "machine-failed"],
])(
  "if a snapshot fails, and the cluster is %s by then, the right error is thrown",
  async (_, find, id) => {
    const state = { find: async (): Promise<ClusterRecord | undefined> => cluster };
    const create = async (): Promise<void> => {
      state.find = find;
      throw new ClusterError("machine-failed", "Its machines are missing.");
    };
    const backend = {
      name: "vm",
      find: async () => state.find(),
      local: { snapshots: { create }, removeExpired: async () => {} },
    } as unknown as Backend<unknown>;
    expect(
      await failureOf(createSnapshot({ ...recorder, environment: {}, signal }, backend, snapshot)),
    ).toMatchObject({
      id,
    });
  },
);

test("clusters of a backend without snapshots can't be restored", async () => {
  const backend = { name: "cloud", find: async () => cluster } as unknown as Backend<unknown>;
  const runtime = { environment: {}, clock: systemClock, progress: recordingProgress().progress };
  expect(await failureOf(restoreSnapshot({ ...runtime, signal }, backend, snapshot))).toMatchObject(
    {
      id: "bad-usage",
    },
  );
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
  const backend = {
    name: "vm",
    find: async () => cluster,
    local: { snapshots: { ...actions, save: call("save") } },
  } as unknown as Backend<unknown>;
  const file = { path: "/x" } as never;
  await createSnapshot({ ...recorder, environment: {}, signal }, backend, snapshot);
  expect((await listSnapshots(backend, cluster.id, signal)) as unknown).toEqual(["list"]);
  await saveSnapshot(backend, { ...snapshot, file }, signal);
  await deleteSnapshot(backend, snapshot, signal);
  expect(calls).toEqual([
    ["create", "installed"],
    ["list"],
    ["save", "installed", file],
    ["delete", "installed"],
  ]);
});
