import { mkdir, readdir, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { expect, test } from "bun:test";
import {
  type ClusterFacts,
  assertIdCanBeClaimed,
  assertIdIsFree,
  endOf,
  parseClusterFacts,
  parseMachineSettings,
  readClusters,
  removeClusterFacts,
  writeClusterFacts,
} from "../../../../src/backend/vm/cluster-facts.ts";
import { toCluster } from "../../../../src/backend/vm/records.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { hostileTexts, textsIn, unprintable } from "../../../support/hostile-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const directory = "/state/vm/default-0123456789abcdef";
const node = {
  id: "vm-01234567-0",
  role: "master",
  index: 0,
  privateAddress: "10.0.0.1",
  ports: { ssh: 4000, http: 4001, https: 4002 },
};
const facts = {
  schemaVersion: 1,
  clusterId: "default",
  creationId: "0123456789abcdef",
  variant: "oss",
  distribution: "own image",
  counts: { master: 1, agent: 0, public_agent: 0 },
  webUi: "http",
  platform: "etcd 2379 3.5",
  createdAt: "2026-01-01T00:00:00.000Z",
  expiresAt: "2026-01-01T04:00:00.000Z",
  createdBy: "0.0.0+abc",
  bootId: "6f3a",
  nodes: [node],
};

test("cluster.json is read back, also one that lacks what it may lack", () => {
  expect(parseClusterFacts(facts, directory)).toEqual(facts as never);
  const {
    webUi: _,
    platform: _____,
    createdAt: __,
    bootId: ___,
    expiresAt: ____,
    ...least
  } = facts;
  expect(parseClusterFacts(least, directory)).toMatchObject(least);
  expect(endOf(parseClusterFacts(least, directory)!).expiresAt).toBeUndefined();
});

test("whether its machines are offline is kept, and nothing else counts for it", () => {
  const machines = { accelerator: "tcg", isSandboxed: true, memoryMegabytes: 768, cpus: 1 };
  const read = (isOffline: unknown) =>
    parseClusterFacts({ ...facts, machines: { ...machines, isOffline } }, directory);
  expect(read(true)?.machines?.isOffline).toBe(true);
  expect(read("true")).toBeUndefined();
});

test("it must be its own folder's", () => {
  expect(parseClusterFacts(facts, "/state/vm/other-0123456789abcdef")).toBeUndefined();
  expect(parseClusterFacts(facts, "/state/vm/default-fedcba9876543210")).toBeUndefined();
});

const changes: readonly (readonly [string, (text: unknown) => object])[] = [
  ...Object.keys(facts).map(
    (key) => [key, (text: unknown) => ({ ...facts, [key]: text })] as const,
  ),
  ...Object.keys(node).map(
    (key) =>
      [
        `node's ${key}`,
        (text: unknown) => ({ ...facts, nodes: [{ ...node, [key]: text }] }),
      ] as const,
  ),
  ["port", (text) => ({ ...facts, nodes: [{ ...node, ports: { ...node.ports, ssh: text } }] })],
  ["second node", (text) => ({ ...facts, nodes: [node, text] })],
  ["counts of masters", (text) => ({ ...facts, counts: { ...facts.counts, master: text } })],
];

// Shows R135.
test.each(changes)("whatever its %s is, what is read has the model's shapes", (_, change) => {
  for (const found of [...hostileTexts(29, 1000), null, 7, -1, {}, [], [[]], { length: 1 }]) {
    const read = parseClusterFacts(change(found), directory);
    if (read === undefined) continue;
    const cluster = toCluster({ directory, facts: read }, ["running"], {
      isRestarted: false,
      isAbandoned: false,
    });
    expect([cluster.id, cluster.creationId]).toEqual(["default", "0123456789abcdef"]);
    for (const text of textsIn({ cluster, read })) expect(text).not.toMatch(unprintable);
    for (const each of cluster.nodes) expect(each.ssh.port).toBeWithin(1, 65_536);
  }
});

test("two nodes of one name are none", () => {
  expect(parseClusterFacts({ ...facts, nodes: [node, node] }, directory)).toBeUndefined();
});

test("a CPU model is a plain name", () => {
  const settings = {
    accelerator: "kvm",
    isSandboxed: true,
    memoryMegabytes: 512,
    cpus: 1,
  } as const;
  expect(parseMachineSettings({ ...settings, cpuModel: "Nehalem" })).toEqual({
    ...settings,
    cpuModel: "Nehalem",
  });
  expect(parseMachineSettings(settings)).toMatchObject(settings);
  expect(parseMachineSettings({ ...settings, cpuModel: "max,enforce" })).toBeUndefined();
});

/** A folder of creations with the cluster `default`, which ends at 04:00. */
async function openRoot() {
  const root = await scratchFolder();
  const here = join(root.path, "default-0123456789abcdef");
  await mkdir(here);
  await writeClusterFacts(here, facts as unknown as ClusterFacts);
  return { root: root.path, here, [Symbol.asyncDispose]: root[Symbol.asyncDispose] };
}
const taken = {
  id: "cluster-exists",
  hint: expect.stringContaining("cluster-vm destroy --cluster-id default"),
};

test("an id is taken by a cluster that isn't about to be removed", async () => {
  await using opened = await openRoot();
  const { root, here } = opened;
  expect(await failureOf(assertIdIsFree(root, "default", ["fedcba9876543210"]))).toMatchObject(
    taken,
  );
  await assertIdIsFree(root, "default", ["fedcba9876543210", "0123456789abcdef"]);
  await assertIdIsFree(root, "other", []);
  const clock = scriptedClock();
  clock.nowMs = Date.parse("2026-01-01T03:59:00.000Z");
  expect(await failureOf(assertIdCanBeClaimed(root, "default", clock))).toMatchObject(taken);
  clock.nowMs = Date.parse("2026-01-01T04:01:00.000Z");
  await assertIdCanBeClaimed(root, "default", clock);
  // A cluster without an end.
  await writeClusterFacts(here, { ...facts, expiresAt: undefined } as unknown as ClusterFacts);
  expect(await failureOf(assertIdCanBeClaimed(root, "default", clock))).toMatchObject(taken);
});

test("an id is also taken by machines about which nothing is known, but not by an empty folder or a link", async () => {
  await using opened = await openRoot();
  const { root, here } = opened;
  for (let times = 0; times < 2; times += 1) await removeClusterFacts(here);
  await assertIdIsFree(root, "default", []);
  await mkdir(join(here, "machines"));
  for (const name of ["lost+found", "default"])
    await mkdir(join(root, name, "machines"), { recursive: true });
  await symlink(here, join(root, "linked-0123456789abcdef"));
  expect(await failureOf(assertIdIsFree(root, "default", []))).toMatchObject(taken);
  await assertIdIsFree(root, "linked", []);
  expect(await readClusters(root)).toMatchObject([
    {
      directory: here,
      facts: { clusterId: "default", counts: { master: 0, agent: 0, public_agent: 0 }, nodes: [] },
    },
  ]);
});

test("a link to a cluster's folder is no cluster, even if it has the same name", async () => {
  await using opened = await openRoot();
  await using other = await scratchFolder();
  await symlink(opened.here, join(other.path, basename(opened.here)));
  expect(await readClusters(opened.root)).toMatchObject([{ facts: { clusterId: "default" } }]);
  expect(await readClusters(other.path)).toEqual([]);
  expect(await readClusters(join(other.path, "missing"))).toEqual([]);
  // A state folder that can't be read isn't an empty one.
  await Bun.write(join(other.path, "file"), "");
  expect(await failureOf(readClusters(join(other.path, "file", "vm")))).toMatchObject({
    code: "ENOTDIR",
  });
});

test("facts that no command could read are not written", async () => {
  await using folder = await scratchFolder();
  const another = join(folder.path, "other-0123456789abcdef");
  await mkdir(another);
  expect(
    await failureOf(writeClusterFacts(another, facts as unknown as ClusterFacts)),
  ).toBeInstanceOf(TypeError);
  expect(await readdir(another)).toEqual([]);
});
