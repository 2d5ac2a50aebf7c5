/** New clusters from a snapshot of real QEMUs whose disks hold a program that only counts. Nobody can log in to it. */

import { appendFile, mkdir, readFile, readdir, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type StoredCluster, readCluster } from "../../../../src/backend/vm/cluster-facts.ts";
import { assertMemory, assertSpace } from "../../../../src/backend/vm/copies/resolve-copy.ts";
import {
  allProcessFiles,
  machineFiles,
} from "../../../../src/backend/vm/machines/machine-process.ts";
import { snapshotsFolder } from "../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { createVmBackend } from "../../../../src/backend/vm/vm-backend.ts";
import { createCluster } from "../../../../src/cluster/create.ts";
import { summarizeCreation } from "../../../../src/cluster/create/plan-machines.ts";
import { Cluster, type CopyClusterRequest, VmBackend } from "../../../../src/index.ts";
import { creationFiles } from "../../../../src/store/creation-folder.ts";
import { type Runtime, passedMs, systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { usableMemory } from "../../../../src/system/usable-memory.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";
import {
  endCountingMachines,
  pinKeys,
  qemuLack,
  readCount,
  startCountingMachines,
} from "./counting-machines.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const checks = test.skipIf(qemuLack !== undefined);
const from = { clusterId: "counting", name: "counted" };
const state: { folder?: Awaited<ReturnType<typeof scratchFolder>>; source?: StoredCluster } = {};
const source = (): StoredCluster => state.source!;
const root = (): string => join(state.folder!.path, "state", "cluster-e2e", "vm");

function runtime(path?: string): Runtime {
  const own = {
    XDG_STATE_HOME: join(state.folder!.path, "state"),
    ...(path !== undefined && { PATH: path }),
  };
  return { environment: { ...process.env, ...own }, clock: systemClock, progress: silentProgress };
}

const backend = (path?: string) => createVmBackend(runtime(path));
const countsOf = async ({ directory, facts }: StoredCluster): Promise<readonly number[]> =>
  Promise.all(facts.nodes.map(async (node) => readCount(machineFiles(directory, node).folder)));

/** Waits until all machines count. */
async function untilCounting(cluster: StoredCluster): Promise<void> {
  const before = await countsOf(cluster);
  await until("the machines count", async () =>
    (await countsOf(cluster)).every((now, place) => now > before[place]!),
  );
}

/** The cluster that a running creation of this id has made so far. */
async function made(clusterId: string): Promise<StoredCluster | undefined> {
  const names = await readdir(root());
  const name = names.find((each) => new RegExp(`^${clusterId}-[0-9a-f]{16}$`).test(each));
  return name === undefined ? undefined : readCluster(join(root(), name));
}

const request = (clusterId: string, limitMs: number, of = from) => ({
  clusterId,
  machines: { from: of },
  installation: undefined,
  ownKey: undefined,
  keepOnFailure: false,
  deadlineMs: passedMs(systemClock) + limitMs,
  onAbandon: () => ({ [Symbol.dispose]: () => {} }),
});
const placeOf = (path?: string) => ({ backend: backend(path), install: undefined });

const create = async (clusterId: string, signal: AbortSignal, limitMs = 60_000) =>
  createCluster({ ...runtime(), signal }, request(clusterId, limitMs), placeOf());

const summarize = async (clusterId: string, path?: string) =>
  summarizeCreation(request(clusterId, 60_000), placeOf(path), neverAborted);

const refusal = async (clusterId: string, path?: string) => failureOf(summarize(clusterId, path));

beforeAll(async () => {
  if (qemuLack !== undefined) return;
  state.folder = await scratchFolder();
  state.source = await startCountingMachines(state.folder.path, runtime());
  await pinKeys(source());
  await untilCounting(source());
  await backend().local.snapshots.create(
    (await backend().find("counting", neverAborted))!,
    "counted",
    neverAborted,
  );
});

afterAll(async () => {
  if (state.source !== undefined) await endCountingMachines(source());
  await state.folder?.[Symbol.asyncDispose]();
});

checks(
  `a plan says what a copy would create, and creates nothing (${qemuLack ?? "here"})`,
  async () => {
    const before = await readdir(root(), { recursive: true });
    const { facts, lines } = await summarize("copy");
    expect(facts).toMatchObject({
      cluster: "copy",
      from: { cluster: "counting", snapshot: "counted" },
      engine: { name: "qemu", accelerator: "tcg" },
      counts: { masters: 1, agents: 1, publicAgents: 0 },
      memoryMegabytes: 32,
      cpus: 1,
    });
    expect(Object.fromEntries(lines)["Continues"]).toMatch(
      /^snapshot "counted" of cluster "counting", made \d{4}-\d\d-\d\d \d\d:\d\d UTC$/,
    );
    expect((await readdir(root(), { recursive: true })).toSorted()).toEqual(before.toSorted());
  },
);

checks(
  "both clusters run side by side, each on its own network and ports, and an interrupt removes the copy",
  async () => {
    const saved = await countsOf(source());
    const interrupted = new AbortController();
    const creation = failureOf(create("copy", interrupted.signal));
    await until("the copy counts", async () => {
      const cluster = await made("copy");
      if (cluster === undefined) return false;
      return (await countsOf(cluster).catch(() => [0])).every((count) => count > 0);
    });
    const copy = (await made("copy"))!;
    await untilCounting(copy);
    await untilCounting(source());
    expect(copy.facts).toMatchObject({
      clusterId: "copy",
      counts: source().facts.counts,
      variant: "oss",
    });
    const [own, others] = [copy, source()].map(({ facts }) =>
      facts.nodes.flatMap(({ ports }) => Object.values(ports)),
    );
    expect(own!.filter((port) => others!.includes(port))).toEqual([]);
    const networkOf = async ({ directory }: StoredCluster) =>
      readFile(join(directory, "machines", "network", "qemu.pid"), "utf8");
    expect(await networkOf(copy)).not.toBe(await networkOf(source()));
    const listed = await backend().list(neverAborted);
    expect(listed.map(({ id }) => id).toSorted()).toEqual(["copy", "counting"]);
    interrupted.abort(new Error("interrupted"));
    expect(await creation).toMatchObject({ message: "interrupted" });
    expect(await made("copy")).toBeUndefined();
    expect((await backend().list(neverAborted)).map(({ id }) => id)).toEqual(["counting"]);
    expect(await allProcessFiles(copy.directory)).toEqual([]);
    await untilCounting(source());
    expect((await countsOf(source())).every((count, place) => count > saved[place]!)).toBe(true);
    expect((await readdir(snapshotsFolder(source().directory))).toSorted()).toEqual(["counted"]);
  },
);

checks("a copy whose machines never answer is removed at its time limit", async () => {
  expect(await failureOf(create("late", neverAborted, 4_000))).toMatchObject({
    id: "deadline-passed",
  });
  expect((await backend().list(neverAborted)).map(({ id }) => id)).toEqual(["counting"]);
  expect(await made("late")).toBeUndefined();
});

checks(
  "the library creates a cluster from a snapshot, and refuses what doesn't go with it",
  async () => {
    const { environment } = runtime();
    const lines: string[] = [];
    const machines = new VmBackend({ environment, onProgress: (line) => lines.push(line) });
    const failure = await failureOf(
      Cluster.create(machines, { from: "counting:counted", timeoutMs: 4_000 }),
    );
    expect(failure).toMatchObject({ id: "deadline-passed" });
    expect(lines).toContain("Continue virtual machines: done");
    expect((await backend().list(neverAborted)).map(({ id }) => id)).toEqual(["counting"]);
    const missing = await failureOf(Cluster.create(machines, { from: "counting:other" }));
    expect(missing).toMatchObject({ id: "snapshot-not-found" });
    const both = { from: "counting:counted", variant: "oss", masters: 1 } as CopyClusterRequest;
    expect(await failureOf(Cluster.create(machines, both))).toMatchObject({
      id: "bad-usage",
      message: "`variant` cannot be combined with `from`; `masters` cannot be combined with `from`",
    });
    expect(await failureOf(Cluster.create(machines, { from: "counting" }))).toMatchObject({
      id: "bad-usage",
    });
  },
);

checks("unknown clusters, unknown snapshots and a taken id are refused", async () => {
  const other = request("copy", 60_000, { ...from, name: "other" });
  expect(await failureOf(summarizeCreation(other, placeOf(), neverAborted))).toMatchObject({
    id: "snapshot-not-found",
    hint: "It has: counted.",
  });
  const nowhere = request("copy", 60_000, { ...from, clusterId: "nowhere" });
  expect(await failureOf(summarizeCreation(nowhere, placeOf(), neverAborted))).toMatchObject({
    id: "cluster-not-found",
  });
  expect(await refusal("counting")).toMatchObject({ id: "cluster-exists" });
  const { local: _, ...without } = backend();
  expect(
    await failureOf(
      summarizeCreation(
        request("copy", 60_000),
        { backend: without, install: undefined },
        neverAborted,
      ),
    ),
  ).toMatchObject({
    id: "bad-usage",
  });
});

checks(
  "another QEMU, another accelerator, missing keys and damage are refused with the reason",
  async () => {
    const bin = join(state.folder!.path, "bin");
    await mkdir(bin);
    await writeFile(
      join(bin, "qemu-system-x86_64"),
      "#!/bin/sh\necho QEMU emulator version 9.9.9\n",
      { mode: 0o755 },
    );
    expect(await refusal("copy", `${bin}:${process.env["PATH"]}`)).toMatchObject({
      id: "snapshot-unusable",
      message: expect.stringMatching(
        /was made by QEMU \d+\.\d+\.\d+, and this computer has 9\.9\.9/,
      ),
    });
    const folder = join(snapshotsFolder(source().directory), "counted");
    const facts = join(folder, "snapshot.json");
    const whole = await readFile(facts, "utf8");
    // QEMU on Linux never has it.
    await writeFile(facts, whole.replace('"accelerator": "tcg"', '"accelerator": "hvf"'));
    expect(await refusal("copy")).toMatchObject({
      id: "snapshot-unusable",
      message: expect.stringContaining("was made under hvf, which does not work here"),
    });
    await writeFile(facts, whole);
    const { knownHosts, privateKey } = creationFiles(source().directory);
    const [pinned, key] = [await readFile(knownHosts, "utf8"), await readFile(privateKey, "utf8")];
    await writeFile(knownHosts, pinned.split("\n")[0]!);
    expect(await refusal("copy")).toMatchObject({
      id: "key-missing",
      message: 'The host key of agent_0 of cluster "counting" is not on this computer.',
    });
    await writeFile(knownHosts, pinned);
    await Bun.file(privateKey).delete();
    expect(await refusal("copy")).toMatchObject({
      id: "key-missing",
      message: expect.stringContaining("The SSH key"),
    });
    await writeFile(privateKey, key);
    const disk = join(folder, "agent_0", "disk.qcow2");
    const { size } = await stat(disk);
    await appendFile(disk, "x");
    expect(await refusal("copy")).toMatchObject({
      id: "snapshot-unusable",
      message: expect.stringContaining("agent_0/disk.qcow2 has changed"),
    });
    await truncate(disk, size);
    expect((await backend().list(neverAborted)).map(({ id }) => id)).toEqual(["counting"]);
  },
);

test("the disks must fit on this computer's disk; the memory is only read", async () => {
  await using folder = await scratchFolder();
  const [disk, memory] = ["agent_0/disk.qcow2", "agent_0/memory"];
  const needing = async (path: string, bytes = 1e18, copies = 1) =>
    assertSpace(folder.path, { files: { [path]: { bytes, sha256: "" } } }, copies);
  await needing(memory);
  expect(await failureOf(needing(disk))).toMatchObject({ id: "capacity-lacking" });
  await needing(disk, 4096);
  expect(await failureOf(needing(disk, 4096, 1e15))).toMatchObject({ id: "capacity-lacking" });
});

// Shows R120.
test("memory must suffice for the copy, and for the source if it runs", () => {
  const nodes = [{ state: "running" }, { state: "running" }];
  const cluster = (states = nodes) =>
    ({ id: "counting", nodes: states }) as unknown as Parameters<typeof assertMemory>[0];
  // QEMU itself takes 28 MB.
  const settings = { memoryMegabytes: 996 };
  const gigabytes = (number: number) => usableMemory(number * 1024 ** 3, undefined);
  expect(() => assertMemory(cluster(), settings, gigabytes(4))).not.toThrow();
  expect(() => assertMemory(cluster(), settings, gigabytes(3))).toThrow(
    'The nodes beside those of cluster "counting" need 4096 MB of memory, but this computer has 3072 MB.',
  );
  const ended = [{ state: "ended" }, { state: "ended" }];
  expect(() => assertMemory(cluster(ended), settings, gigabytes(2))).not.toThrow();
  expect(() => assertMemory(cluster(ended), settings, gigabytes(1))).toThrow(
    "The nodes need 2048 MB",
  );
  expect(() => assertMemory(cluster(ended), settings, gigabytes(5), 3)).toThrow(
    "The nodes of 3 copies need 6144 MB",
  );
});
