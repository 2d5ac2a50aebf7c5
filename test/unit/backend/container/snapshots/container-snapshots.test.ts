import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { containerSnapshots } from "../../../../../src/backend/container/snapshots/container-snapshots.ts";
import type { ClusterRecord } from "../../../../../src/model/cluster-record.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { recordingProgress } from "../../../../support/recording-progress.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { clusterId, creationId, SnapshotEngine } from "./snapshot-engine.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scriptedClock } from "../../../../support/scripted-clock.ts";

async function openCluster(given: ConstructorParameters<typeof SnapshotEngine>[0] = {}) {
  const folder = await scratchFolder();
  const root = join(folder.path, "docker");
  const { progress, steps } = recordingProgress();
  const clock = scriptedClock();
  const memory = new SnapshotEngine(given);
  const { engine, containers, images, changes } = memory;
  const directory = join(root, `${clusterId}-${creationId}`);
  const cluster = { id: clusterId, creationId, directory } as ClusterRecord;
  const snapshots = containerSnapshots(engine, root, { environment: {}, clock, progress });
  return {
    memory,
    containers,
    images,
    changes,
    steps,
    lock: `${directory}.lock`,
    list: async () => snapshots.list(cluster, neverAborted),
    create: async (name: string) => snapshots.create(cluster, name, neverAborted),
    restore: async (name: string) => snapshots.restore(cluster, name, neverAborted),
    planCopy: async (name: string) =>
      snapshots.planCopy({ clusterId: "copy", source: cluster, snapshot: name }, neverAborted),
    save: async (name: string) => {
      const file = {
        path: join(folder.path, "file"),
        withoutBase: false,
        replaces: false,
        encrypt: undefined,
      };
      return snapshots.save(cluster, name, file, neverAborted);
    },
    delete: async (name: string) => snapshots.delete(cluster, name, neverAborted),
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

const addresses = ({ containers }: Awaited<ReturnType<typeof openCluster>>) =>
  [...containers.values()].map(({ address, status }) => [address, status]);

test("a snapshot saves every node, and a restore replaces them all at their addresses", async () => {
  await using cluster = await openCluster();
  expect(await cluster.list()).toEqual([]);
  await cluster.create("installed");
  expect(await cluster.list()).toEqual([
    {
      name: "installed",
      createdAt: new Date("2026-01-01T00:00:01Z"),
      sizeBytes: 3_000,
      isComplete: true,
    },
  ]);
  expect(cluster.changes.at(-1)).toBe("unpause");
  const before = [...cluster.containers.keys()];
  await cluster.restore("installed");
  expect(before.filter((id) => cluster.containers.has(id))).toEqual([]);
  expect(addresses(cluster)).toEqual([
    ["10.89.0.2", "running"],
    ["10.89.0.3", "running"],
  ]);
  expect(cluster.steps).toEqual([
    "Check the engine's free space: done",
    "Save file systems: done",
    "Restore file systems: done",
  ]);
  await cluster.delete("installed");
  expect(cluster.images.size).toBe(0);
  expect(existsSync(cluster.lock)).toBeFalse();
});

test("a snapshot holds what is in the nodes' volumes, and helpers with the nodes' rights copy it there and back", async () => {
  await using cluster = await openCluster({ hasVolumes: true });
  await cluster.create("installed");
  expect(await cluster.list()).toMatchObject([
    { sizeBytes: 2 * (1_500 + 4 * 1024), isComplete: true },
  ]);
  expect(cluster.memory.volumes.size).toBe(2);
  await cluster.restore("installed");
  const helpers = cluster.memory.runs.filter((words) => words.includes("--log-driver=none"));
  expect(helpers).toHaveLength(4);
  for (const words of helpers)
    expect(words).toEqual(
      expect.arrayContaining(["--privileged", ...cluster.memory.engine.kind.systemWords]),
    );
  await cluster.delete("installed");
  expect([cluster.images.size, cluster.memory.volumes.size]).toEqual([0, 0]);
});

test("what the engine permits is tested with the image of a node, even of the only one", async () => {
  await using cluster = await openCluster({ agents: 0 });
  await cluster.create("installed");
  expect(cluster.memory.runs.map((words) => words.at(-3))).toEqual(["cd".repeat(32)]);
});

test("a restore under a limit that isn't delegated any more is refused before a node is removed", async () => {
  await using cluster = await openCluster();
  await cluster.create("installed");
  const made = cluster.changes.length;
  const host = { cgroupVersion: "v2", cgroupManager: "systemd", security: { rootless: true } };
  cluster.memory.host = { ...host, cgroupControllers: ["cpu", "pids"] };
  const error = await failureOf(cluster.restore("installed"));
  expect(error).toMatchObject({ id: "machine-not-set-up", facts: { limit: "memory" } });
  expect(error.hint).toContain("Delegate=");
  expect(cluster.changes).toHaveLength(made);
  cluster.memory.host = { ...host, cgroupControllers: ["memory", "pids"] };
  await cluster.restore("installed");
});

test("a folder that nodes mount and that is gone is named before a node is removed", async () => {
  await using cluster = await openCluster({ volumes: ["/data:/data:ro", "/gone:/gone"] });
  await cluster.create("installed");
  const made = cluster.changes.length;
  cluster.memory.missing = "/gone";
  for (const use of ["restore", "planCopy"] as const)
    expect(await failureOf(cluster[use]("installed"))).toMatchObject({
      id: "snapshot-unusable",
      message:
        'The snapshot "installed" of cluster "default" needs /gone, which does not exist on the computer that Podman runs on.',
    });
  expect(cluster.changes).toHaveLength(made);
  cluster.memory.missing = undefined;
  await cluster.restore("installed");
});

test("a name can't be used twice, and an unknown name is not found", async () => {
  await using cluster = await openCluster();
  await cluster.create("installed");
  const made = cluster.changes.length;
  expect(await failureOf(cluster.create("installed"))).toMatchObject({ id: "snapshot-exists" });
  for (const act of ["restore", "delete"] as const)
    expect(await failureOf(cluster[act]("other"))).toMatchObject({
      id: "snapshot-not-found",
      hint: "It has: installed.",
    });
  expect(cluster.changes).toHaveLength(made);
});

test.each([
  ["paused", "agent_0 is paused"],
  ["exited", "agent_0 is stopped"],
  ["missing", "some of its nodes are missing"],
])("a cluster of which a node is %s is not saved", async (what, problem) => {
  await using cluster = await openCluster();
  const [, [id, agent]] = [...cluster.containers] as [unknown, [string, { status: string }]];
  if (what === "missing") cluster.containers.delete(id);
  else agent.status = what;
  const failure = await failureOf(cluster.create("installed"));
  expect(failure).toMatchObject({ id: "machine-failed" });
  expect(failure.message).toBe(`Cluster "default" cannot be saved: ${problem}.`);
  expect([cluster.images.size, cluster.steps]).toEqual([0, []]);
});

test("a save that fails leaves no images, and the nodes continue", async () => {
  await using cluster = await openCluster();
  cluster.memory.failing = "tag";
  expect(await failureOf(cluster.create("installed"))).toMatchObject({ message: "It failed." });
  expect(cluster.images.size).toBe(0);
  expect(cluster.changes).toContain("unpause");
  expect(cluster.steps.at(-1)).toBe("Save file systems: failed");
});

test("a save of which a part is lost is an error, and leaves nothing", async () => {
  await using cluster = await openCluster();
  cluster.memory.ignored = /^tag .*agent/;
  expect(await failureOf(cluster.create("installed"))).toMatchObject({ id: "snapshot-unusable" });
  expect([cluster.images.size, cluster.steps.at(-1)]).toEqual([0, "Save file systems: failed"]);
});

test("a snapshot that lacks a node is not restored, and can be made again under its name", async () => {
  await using cluster = await openCluster();
  await cluster.create("installed");
  const [image = ""] = cluster.images.keys();
  cluster.images.delete(image);
  expect(await cluster.list()).toMatchObject([{ name: "installed", isComplete: false }]);
  const before = [...cluster.containers.keys()];
  expect(await failureOf(cluster.restore("installed"))).toMatchObject({ id: "snapshot-unusable" });
  expect([...cluster.containers.keys()]).toEqual(before);
  cluster.changes.length = 0;
  await cluster.create("installed");
  expect(await cluster.list()).toMatchObject([{ name: "installed", isComplete: true }]);
  // The rest of it goes first: the new snapshot must not contain any of it.
  expect(cluster.changes.indexOf("untag")).toBeLessThan(cluster.changes.indexOf("commit"));
});

test("nodes that can't be removed are left as they are, and the restore says which", async () => {
  await using cluster = await openCluster();
  await cluster.create("installed");
  cluster.memory.failing = "rm";
  const failure = await failureOf(cluster.restore("installed"));
  expect(failure).toMatchObject({ id: "engine-failed", hint: "Restore again." });
  expect(failure.message).toStartWith(
    "Left behind: container c00000000000, container c10000000000",
  );
  expect(cluster.changes).not.toContain("create");
});

test("a snapshot of an earlier version, which lacks the network, is neither copied nor saved in a file", async () => {
  await using cluster = await openCluster();
  await cluster.create("installed");
  const copy = await failureOf(cluster.planCopy("installed"));
  expect(copy).toMatchObject({
    id: "snapshot-unusable",
    facts: { cluster: clusterId, snapshot: "installed" },
  });
  expect(copy.message).toContain("earlier version");
  expect((await failureOf(cluster.save("installed"))).id).toBe("snapshot-unusable");
  expect(existsSync(cluster.lock)).toBeFalse();
});
