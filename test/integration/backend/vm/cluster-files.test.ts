/** A cluster of real QEMUs that is saved as a file, and continues from it on another computer: other folders for state and cache. */

import { mkdir, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type StoredCluster, readCluster } from "../../../../src/backend/vm/cluster-facts.ts";
import { machineFiles } from "../../../../src/backend/vm/machines/machine-process.ts";
import type { SnapshotFile } from "../../../../src/model/snapshot.ts";
import { queryRunState } from "../../../../src/backend/vm/qemu/monitor.ts";
import { createVmBackend } from "../../../../src/backend/vm/vm-backend.ts";
import { createCluster } from "../../../../src/cluster/create.ts";
import { summarizeCreation } from "../../../../src/cluster/create/plan-machines.ts";
import { encryptionFor } from "../../../../src/cluster/export-cluster.ts";
import { saveSnapshot } from "../../../../src/cluster/snapshots.ts";
import { type Runtime, passedMs, systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { rewrite } from "../../../support/rewrite-cluster-file.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";
import {
  endCountingMachines,
  pinKeys,
  qemuLack,
  readCount,
  startCountingMachines,
} from "./counting-machines.ts";

const testHere = test.skipIf(qemuLack !== undefined);
const state: { folder?: Awaited<ReturnType<typeof scratchFolder>>; source?: StoredCluster } = {};
/** More than a machine counts in the time until it is looked at. */
const savedCount = 60;
const folder = (): string => state.folder!.path;
const file = (): string => join(folder(), "cluster.zst");
const stateOf = (computer: string): string =>
  join(folder(), computer === "first" ? "state" : computer);

function runtime(computer: string, notes: string[] = [], path = process.env["PATH"]): Runtime {
  const own = {
    XDG_STATE_HOME: stateOf(computer),
    XDG_CACHE_HOME: join(stateOf(computer), "cache"),
    PATH: path,
  };
  const progress = { ...silentProgress, note: (text: string) => void notes.push(text) };
  return { environment: { ...process.env, ...own }, clock: systemClock, progress };
}

const backend = (computer: string) => createVmBackend(runtime(computer));
const save = async (path: string, how: Partial<SnapshotFile> = {}) =>
  saveSnapshot(
    backend("first"),
    {
      clusterId: "counting",
      name: "counted",
      file: { path, withoutBase: false, replaces: false, ...how },
    },
    neverAborted,
  );

const request = (limitMs: number, path = file()) => ({
  clusterId: "copy",
  machines: { from: { location: { path, shown: path } } },
  installation: undefined,
  ownKey: undefined,
  keepOnFailure: false,
  deadlineMs: passedMs(systemClock) + limitMs,
  onAbandon: () => ({ [Symbol.dispose]: () => {} }),
});

async function made(computer: string): Promise<StoredCluster | undefined> {
  const root = join(stateOf(computer), "cluster-e2e", "vm");
  const names = await readdir(root).catch(() => []);
  const found = names
    .filter((each) => /^copy-[0-9a-f]{16}$/.test(each))
    .map(async (name) => readCluster(join(root, name)));
  return (await Promise.all(found)).find((cluster) => cluster !== undefined);
}

const countsOf = async ({ directory, facts }: StoredCluster): Promise<readonly number[]> =>
  Promise.all(
    facts.nodes.map(async (node) => readCount(machineFiles(directory, node).folder).catch(() => 0)),
  );

/** Creates a cluster that nobody can log in to, looks at it, and interrupts the creation. Nothing of it may be left but its images. */
async function createAndLook(
  on: Runtime,
  computer: string,
  look: (copy: StoredCluster) => Promise<void>,
  path = file(),
): Promise<void> {
  const interrupted = new AbortController();
  const place = { backend: createVmBackend(on), install: undefined };
  const creation = failureOf(
    createCluster({ ...on, signal: interrupted.signal }, request(60_000, path), place),
  );
  try {
    await until("the copy counts", async () => {
      const cluster = await made(computer);
      if (cluster === undefined) return false;
      // Memory that is mapped has a count before the machine runs.
      const folders = cluster.facts.nodes.map(
        (node) => machineFiles(cluster.directory, node).folder,
      );
      const states = await Promise.all(folders.map(queryRunState));
      return (
        states.every((each) => each === "running") &&
        (await countsOf(cluster)).every((count) => count > 0)
      );
    });
    await look((await made(computer))!);
  } finally {
    interrupted.abort(new Error("interrupted"));
    await creation;
  }
  expect(await creation).toMatchObject({ message: "interrupted" });
  expect(await made(computer)).toBeUndefined();
  const left = await readdir(stateOf(computer), { recursive: true });
  expect(left.filter((name) => /disk|memory|\.part|\/draft|\.\.file/.test(name))).toEqual([]);
}

beforeAll(async () => {
  if (qemuLack !== undefined) return;
  state.folder = await scratchFolder();
  state.source = await startCountingMachines(folder(), runtime("first"));
  await pinKeys(state.source);
  await until("the machines count", async () =>
    (await countsOf(state.source!)).every((count) => count > savedCount),
  );
  await backend("first").local.snapshots.create(
    (await backend("first").find("counting", neverAborted))!,
    "counted",
    neverAborted,
  );
  await save(file());
});

afterAll(async () => {
  if (state.source !== undefined) await endCountingMachines(state.source);
  await state.folder?.[Symbol.asyncDispose]();
});

testHere(
  `the file can only be read by its user, and zstd can read it (${qemuLack ?? "here"})`,
  async () => {
    expect((await stat(file())).mode & 0o777).toBe(0o600);
    expect((await readdir(folder())).filter((name) => name.startsWith("cluster-e2e-"))).toEqual([]);
    expect((await readFile(file())).toString("latin1")).not.toContain("PRIVATE KEY");
  },
);

// Shows R121.
testHere(
  "on another computer, the machines go on counting from the memory in the file, any number of times",
  async () => {
    for (const computer of ["second", "second", "third"]) {
      const notes: string[] = [];
      await createAndLook(runtime(computer, notes), computer, async (copy) => {
        expect(copy.facts).toMatchObject({
          clusterId: "copy",
          counts: state.source!.facts.counts,
          variant: "oss",
        });
        expect(copy.facts.machines).toMatchObject({ cpuModel: "Nehalem" });
        expect((await countsOf(copy)).every((count) => count > savedCount)).toBe(true);
      });
      expect(notes.join()).not.toContain("boot");
      const images = await readdir(join(stateOf(computer), "cache", "cluster-e2e", "images"));
      expect(images.filter((name) => name.endsWith(".img")).length).toBe(1);
    }
  },
);

testHere(
  "where the memory doesn't fit, the machines boot from their disks, and a line says why",
  async () => {
    const bin = join(folder(), "bin");
    await mkdir(bin);
    const other = `#!/bin/sh\n[ "$1" = --version ] && echo QEMU emulator version 9.9.9 && exit\nexec ${Bun.which("qemu-system-x86_64")} "$@"\n`;
    await writeFile(join(bin, "qemu-system-x86_64"), other, { mode: 0o755 });
    const notes: string[] = [];
    const on = runtime("second", notes, `${bin}:${process.env["PATH"]}`);
    await createAndLook(on, "second", async (copy) => {
      expect((await countsOf(copy)).every((count) => count < savedCount)).toBe(true);
    });
    expect(notes).toContainEqual(
      expect.stringMatching(
        /^The nodes boot from their disks: QEMU \d+\.\d+\.\d+ saved their memory, and this computer has 9\.9\.9\.$/,
      ),
    );
  },
);

testHere("if QEMU cannot load the memory after all, the machines boot", async () => {
  const path = join(folder(), "broken.zst");
  const broken = Buffer.from("this is no state");
  await rewrite(file(), path, (name, bytes) => (name.endsWith("/state") ? broken : bytes));
  const notes: string[] = [];
  await createAndLook(
    runtime("second", notes),
    "second",
    async (copy) => {
      expect((await countsOf(copy)).every((count) => count < savedCount)).toBe(true);
    },
    path,
  );
  expect(notes).toContainEqual(
    "The nodes boot from their disks: QEMU cannot continue from their memory.",
  );
});

testHere("a file without its image needs a computer that has it", async () => {
  const path = join(folder(), "light.zst");
  await save(path, { withoutBase: true });
  expect((await stat(path)).size).toBeLessThan((await stat(file())).size);
  for (const from of [file(), path])
    await createAndLook(runtime("fifth"), "fifth", async () => {}, from);
  const place = { backend: backend("fourth"), install: undefined };
  expect(
    await failureOf(summarizeCreation(request(60_000, path), place, neverAborted)),
  ).toMatchObject({
    id: "image-not-found",
  });
});

testHere("a dry run creates nothing", async () => {
  const place = { backend: backend("fourth"), install: undefined };
  const { facts } = await summarizeCreation(request(60_000), place, neverAborted);
  expect(facts).toMatchObject({
    cluster: "copy",
    boots: false,
    from: { cluster: "counting", snapshot: "counted" },
  });
  expect(await readdir(stateOf("fourth")).catch(() => [])).toEqual([]);
});

testHere(
  "a file that exists is replaced only if that is asked for, and anything else never",
  async () => {
    const path = join(folder(), "other.zst");
    await writeFile(path, "precious");
    expect(await failureOf(save(path))).toMatchObject({ id: "bad-usage" });
    expect(await readFile(path, "utf8")).toBe("precious");
    await save(path, { replaces: true });
    expect((await stat(path)).size).toBeGreaterThan(1000);
    expect(await failureOf(save(folder(), { replaces: true }))).toMatchObject({ id: "bad-usage" });
    expect(await failureOf(save(join(folder(), "missing", "file.zst")))).toMatchObject({
      id: "bad-usage",
    });
    expect(await failureOf(save("/dev/full", { replaces: true }))).toMatchObject({
      id: "bad-usage",
    });
  },
);

test.skipIf(qemuLack !== undefined || Bun.which("age-keygen") === null)(
  "a file for a recipient can only be used once the recipient has decrypted it",
  async () => {
    const [key, path, plain] = ["key", "cluster.age", "decrypted.zst"].map((name) =>
      join(folder(), name),
    ) as [string, string, string];
    await Bun.$`age-keygen -o ${key}`.quiet();
    const recipient = (await Bun.$`age-keygen -y ${key}`.text()).trim();
    await save(path, { encrypt: encryptionFor([recipient], process.env) });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const place = { backend: backend("fourth"), install: undefined };
    expect(
      await failureOf(summarizeCreation(request(60_000, path), place, neverAborted)),
    ).toMatchObject({
      id: "snapshot-unusable",
      message: expect.stringContaining("is encrypted with age"),
    });
    await Bun.$`age --decrypt -i ${key} --output ${plain} ${path}`.quiet();
    const { facts } = await summarizeCreation(request(60_000, plain), place, neverAborted);
    expect(facts).toMatchObject({ cluster: "copy" });
    const refused = save(join(folder(), "refused.age"), {
      encrypt: encryptionFor(["nobody"], process.env),
    });
    expect(await failureOf(refused)).toMatchObject({
      id: "bad-usage",
      message: expect.stringContaining("age cannot encrypt"),
    });
    expect((await readdir(folder())).filter((name) => name.startsWith("refused"))).toEqual([]);
  },
);
