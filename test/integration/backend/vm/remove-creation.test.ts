/** Removes creations whose cluster.json is missing or broken, with real processes in place of QEMU. */
import { expect, test } from "bun:test";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { machineFiles } from "../../../../src/backend/vm/machines/machine-process.ts";
import { leftoversCheck } from "../../../../src/backend/vm/checks.ts";
import { lockMachines } from "../../../../src/backend/shared/lock-machines.ts";
import { removeCreation } from "../../../../src/backend/vm/records.ts";
import { recordSockets } from "../../../../src/backend/vm/machines/private-network.ts";
import { snapshotFolder } from "../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { createVmBackend } from "../../../../src/backend/vm/vm-backend.ts";
import { lookAtMachines } from "../../../../src/backend/vm/machines/launch.ts";
import { destroyCluster } from "../../../../src/cluster/destroy-clusters.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { startQemuProcess } from "../../../support/qemu-process.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const silent = { clock: systemClock, progress: silentProgress, environment: {} };

/** A running machine that is not recorded anywhere. */
async function machine(directory: string) {
  const files = machineFiles(directory, { role: "agent", index: 2 });
  await mkdir(files.folder, { recursive: true });
  const child = await startQemuProcess(files.pid);
  await writeFile(files.pid, `${child.pid}\n`);
  await writeFile(files.disk, "");
  return child;
}

test("machines are ended even without cluster.json, and snapshots go with them", async () => {
  await using root = await scratchFolder();
  const directory = join(root.path, "one");
  await using child = await machine(directory);
  const snapshot = snapshotFolder(directory, "installed");
  await mkdir(snapshot, { recursive: true });
  await writeFile(join(snapshot, "memory"), "");
  await removeCreation({ ...silent, signal: neverAborted }, directory);
  expect(await child.exited).toBe(143);
  // An interrupted removal is repeated.
  await removeCreation({ ...silent, signal: neverAborted }, directory);
  expect(await readdir(directory)).toEqual([]);
  expect(await readdir(root.path)).toEqual(["one"]);
});

test.each([
  ["is not there", undefined],
  ["is damaged", "{"],
  ["is another version's", JSON.stringify({ schemaVersion: 2, clusterId: "one", nodes: [] })],
])("doctor, list and destroy know a cluster whose cluster.json %s", async (_, text) => {
  await using state = await scratchFolder();
  const environment = { XDG_STATE_HOME: state.path };
  const runtime = { environment, clock: systemClock, progress: silentProgress };
  const root = join(state.path, "cluster-e2e", "vm");
  const directory = join(root, "one-0123456789abcdef");
  await using child = await machine(directory);
  if (text !== undefined) await writeFile(join(directory, "cluster.json"), text);
  expect(await leftoversCheck(root, systemClock).run(neverAborted)).toMatchObject({
    status: "warn",
    message: `Left over: cluster "one" (${directory}/cluster.json cannot be read).`,
    remedy: "Remove those that you no longer need: cluster-vm destroy --cluster-id one",
  });
  const backend = createVmBackend(runtime);
  expect(await backend.list(neverAborted)).toMatchObject([
    { id: "one", state: "incomplete", nodes: [] },
  ]);
  await destroyCluster({ ...runtime, signal: neverAborted }, backend, "one");
  expect(await child.exited).toBe(143);
  expect(await readdir(directory)).toEqual([]);
  expect(await backend.list(neverAborted)).toEqual([]);
  expect(await leftoversCheck(root, systemClock).run(neverAborted)).toMatchObject({
    status: "pass",
  });
});

test("a folder that is a link isn't a cluster: doctor names it, and nothing behind it is ended or removed", async () => {
  await using state = await scratchFolder();
  const runtime = {
    environment: { XDG_STATE_HOME: state.path },
    clock: systemClock,
    progress: silentProgress,
  };
  const root = join(state.path, "cluster-e2e", "vm");
  const elsewhere = join(state.path, "elsewhere");
  await using child = await machine(elsewhere);
  await mkdir(root, { recursive: true });
  await symlink(elsewhere, join(root, "one-0123456789abcdef"));
  const backend = createVmBackend(runtime);
  expect(await backend.list(neverAborted)).toEqual([]);
  expect(
    (await failureOf(destroyCluster({ ...runtime, signal: neverAborted }, backend, "one"))).id,
  ).toBe("cluster-not-found");
  expect(await leftoversCheck(root, systemClock).run(neverAborted)).toMatchObject({
    status: "warn",
    message: expect.stringContaining("folder one-0123456789abcdef: it is a link to another place"),
  });
  expect([child.exitCode, await readdir(elsewhere)]).toEqual([null, ["machines"]]);
  child.kill();
  await child.exited;
});

test("removes the network sockets that a killed create left, and nothing else in their folder", async () => {
  await using root = await scratchFolder();
  const directory = join(root.path, "one");
  const [left, shared, foreign] = ["cluster-e2e-AbC123", "cluster-e2e-dEf456", "home"].map((name) =>
    join(root.path, name),
  );
  for (const folder of [left!, shared!, foreign!]) {
    await mkdir(folder);
    await writeFile(join(folder, "socket-0"), "");
    await recordSockets(directory, folder);
    if (folder === shared) await writeFile(join(folder, "socket-less"), "");
    await removeCreation({ ...silent, signal: neverAborted }, directory);
  }
  expect((await readdir(root.path)).toSorted()).toEqual(["cluster-e2e-dEf456", "home", "one"]);
  expect(await readdir(shared!)).toEqual(["socket-less"]);
  expect(await readdir(foreign!)).toEqual(["socket-0"]);
});

test("nothing is removed while machines are starting", async () => {
  await using root = await scratchFolder();
  const directory = join(root.path, "one");
  await using child = await machine(directory);
  const launching = await lockMachines({ ...silent, signal: neverAborted }, directory);
  const impatient = new AbortController();
  const { promise: told, resolve: note } = Promise.withResolvers<string>();
  const waiting = { ...silent, progress: { ...silentProgress, note } };
  const removal = failureOf(removeCreation({ ...waiting, signal: impatient.signal }, directory));
  expect(await told).toBe("Waiting for other work on this cluster's machines.");
  impatient.abort(new Error("given up"));
  expect((await removal).message).toBe("given up");
  expect(child.exitCode).toBeNull();
  expect(await readdir(directory)).toEqual(["machines"]);
  await launching[Symbol.asyncDispose]();
  await removeCreation({ ...silent, signal: neverAborted }, directory);
  expect(await readdir(directory)).toEqual([]);
});

test("a lock that is never released is reported with its file", async () => {
  await using root = await scratchFolder();
  const directory = join(root.path, "one");
  await symlink("00000000:1:0123456789abcdef:0123456789ab", `${directory}.lock`);
  const clock = scriptedClock();
  const failure = await failureOf(
    removeCreation(
      { clock, progress: silentProgress, environment: {}, signal: neverAborted },
      directory,
    ),
  );
  expect(failure.id).toBe("deadline-passed");
  expect(failure.hint).toContain(`remove ${directory}.lock`);
  expect(clock.nowMs).toBe(300_000);
});

test("a creation that another process removed fails and says why", async () => {
  await using root = await scratchFolder();
  const failure = await failureOf(
    lookAtMachines(root.path, {
      architecture: { firmware: "BIOS", name: "x86_64" },
      clock: scriptedClock(),
      up: new Set(),
    }),
  );
  expect(failure.id).toBe("machine-failed");
  expect(failure.message).toContain("removed");
});
