import { mkdir, rename, rm } from "node:fs/promises";
import { ClusterError } from "../../../errors.ts";
import { commandName, runCommand } from "../../../references.ts";
import {
  type ClusterName,
  type ClusterRecord,
  nodeReference,
} from "../../../model/cluster-record.ts";
import {
  assertFreeSpace,
  makePrivateFolder,
  writePrivateFile,
} from "../../../system/files/private-file.ts";
import type { Runtime, Work } from "../../../system/runtime.ts";
import type { CopyRequest, FileCopyRequest, Snapshots } from "../../contract.ts";
import type { SnapshotRecord } from "../../../model/snapshot.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import { assertIncomplete, notRunning } from "../../shared/machine-errors.ts";
import { type StoredCluster, assertIdCanBeClaimed, machinesOf } from "../cluster-facts.ts";
import type { CopyOrigin } from "../copies/copy-origin.ts";
import { resolveCopy } from "../copies/resolve-copy.ts";
import { VmCopy } from "../copies/vm-copy.ts";
import { readOwnCluster } from "../machines/launch.ts";
import { type MachineFiles, isRunning, machineFiles } from "../machines/machine-process.ts";
import { askEach } from "../qemu/ask-each.ts";
import { queryRunState, queryVersion } from "../qemu/monitor.ts";
import { type Qemu, qemuVersion, release } from "../qemu/qemu.ts";
import { pauseMachines } from "./pause-machines.ts";
import { type Saving, saveStates, startReceivers } from "./receivers.ts";
import { restoreMachines } from "./restore-machines.ts";
import { describeFiles, saveMachines } from "./save-machines.ts";
import {
  assertAllThere,
  checkSnapshot,
  draftFolder,
  factsPath,
  factsText,
  findAnySnapshot,
  findSnapshot,
  readSnapshotFacts,
  readSnapshotFolders,
  snapshotFolder,
  snapshotsFolder,
  usedBytes,
} from "./snapshot-files.ts";

/** Snapshots of memory and disks of all machines, as files in the cluster's folder. */
export function vmSnapshots(qemu: Qemu, root: string, runtime: Runtime): Snapshots {
  const lock = async ({ directory }: ClusterName, signal: AbortSignal): Promise<AsyncDisposable> =>
    lockMachines({ ...runtime, signal }, directory);
  return {
    holdsMemory: true,
    list: async ({ directory }) => listSnapshots(directory),
    create: async (cluster, name, signal) => {
      await using _ = await lock(cluster, signal);
      await create({ ...runtime, signal }, qemu, cluster, name);
    },
    restore: async (cluster, name, signal) => {
      await using _ = await lock(cluster, signal);
      await restore({ ...runtime, signal }, qemu, cluster, name);
    },
    delete: async (cluster, name, signal) => {
      await using _ = await lock(cluster, signal);
      await deleteSnapshot(cluster, name);
    },
    save: async (cluster, name, file, signal) => {
      const { saveFile } = await import("../files/save-file.ts");
      await using _ = await lock(cluster, signal);
      const stored = await readOwnCluster(cluster.directory);
      const snapshot = await findSnapshot(cluster, name);
      const saved = await assertAllThere(cluster, { facts: stored.facts, snapshot }, signal);
      const { progress } = runtime;
      await saveFile(qemu, { stored, snapshot, saved, progress }, file, signal);
    },
    planCopy: async (request, signal) => {
      const work = { ...runtime, signal };
      await assertIdCanBeClaimed(root, request.clusterId, runtime.clock);
      const origin = await originOf(work, qemu, request, root);
      return new VmCopy({ qemu, root, request, origin }, runtime);
    },
  };
}

async function originOf(
  work: Work,
  qemu: Qemu,
  request: CopyRequest | FileCopyRequest,
  root: string,
): Promise<CopyOrigin> {
  if ("source" in request) return resolveCopy(work, qemu, request, root);
  const { resolveFile } = await import("../files/resolve-file.ts");
  return resolveFile(work, qemu, request);
}

async function listSnapshots(directory: string): Promise<readonly SnapshotRecord[]> {
  const records = (await readSnapshotFolders(directory)).map(
    async ({ name, folder, isComplete }) => {
      const facts = await readSnapshotFacts(folder);
      const createdAt = facts === undefined ? undefined : new Date(facts.createdAt);
      const sizeBytes = await usedBytes(folder);
      return { name, createdAt, sizeBytes, isComplete: isComplete && facts !== undefined };
    },
  );
  return (await Promise.all(records)).toSorted(
    (a, b) => (a.createdAt?.getTime() ?? 0) - (b.createdAt?.getTime() ?? 0),
  );
}

async function create(
  { clock, progress, signal }: Work,
  qemu: Qemu,
  cluster: ClusterRecord,
  name: string,
): Promise<void> {
  const { directory } = cluster;
  const existing = (await readSnapshotFolders(directory)).filter((each) => each.name === name);
  const isComplete = existing.some((each) => each.isComplete);
  assertIncomplete(cluster, name, isComplete);
  const stored = await readOwnCluster(directory);
  await assertAllRun(stored, { progress });
  const machines = machinesOf(stored.facts, "had no snapshots", "Create it again to save it.");
  const draft = draftFolder(directory, name);
  await rm(draft, { recursive: true, force: true });
  await makePrivateFolder(snapshotsFolder(directory));
  await assertRoom(stored, machines.memoryMegabytes);
  using step = progress.start("Save memory and disks");
  const createdAt = new Date(clock.now()).toISOString();
  try {
    await mkdir(draft, { mode: 0o700 });
    const savedBy = await saveRunning(qemu, { stored, machines, folder: draft, clock }, signal);
    const files = await describeFiles({ folder: draft, nodes: stored.facts.nodes }, signal);
    const facts = { createdAt, qemuVersion: savedBy, machines, files };
    await writePrivateFile(factsPath(draft), factsText(facts));
    await rename(draft, snapshotFolder(directory, name));
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
  step.done();
}

/** Resolves with the version of the QEMU that runs the machines. */
async function saveRunning(qemu: Qemu, saving: Saving, signal: AbortSignal): Promise<string> {
  const { directory, facts } = saving.stored;
  const { nodes } = facts;
  const version = await assertSameQemu(qemu, saving.stored, signal);
  await using _ = await startReceivers(qemu, saving, signal);
  {
    await using _paused = await pauseMachines({ directory, nodes }, signal);
    await saveMachines(saving, signal);
  }
  await saveStates(saving, signal);
  return version;
}

async function restore(
  { clock, progress, signal }: Work,
  qemu: Qemu,
  cluster: ClusterRecord,
  name: string,
): Promise<void> {
  const stored = await readOwnCluster(cluster.directory);
  const snapshot = await findSnapshot(cluster, name);
  using checking = progress.start("Check the snapshot");
  const saved = await checkSnapshot(qemu, { cluster, facts: stored.facts, snapshot }, signal);
  checking.done();
  using step = progress.start("Restore memory and disks");
  const { folder } = snapshot;
  await restoreMachines(qemu, { cluster: stored, folder, saved, clock }, signal);
  step.done();
}

async function deleteSnapshot(cluster: ClusterName, name: string): Promise<void> {
  const snapshot = await findAnySnapshot(cluster, name);
  const draft = draftFolder(cluster.directory, name);
  if (snapshot.isComplete) {
    await rm(draft, { recursive: true, force: true });
    await rename(snapshot.folder, draft);
  }
  await rm(draft, { recursive: true, force: true });
}

async function assertAllRun(
  { directory, facts }: StoredCluster,
  work: Pick<Work, "progress">,
): Promise<void> {
  const states = await askEach(work, facts.nodes, async (node) => ({
    name: nodeReference(node),
    state: await runState(machineFiles(directory, node)),
  }));
  const idle = states.find(({ state }) => state !== "is running");
  if (idle === undefined) return;
  const { name, state } = idle;
  const hint =
    state === silent ? `Restart ${name} by force, or restore another snapshot first.` : undefined;
  throw notRunning(facts.clusterId, `${name} ${state}`, hint);
}

/** Memory goes to another QEMU, which must read what the machines' one writes. Resolves with the version of that. */
async function assertSameQemu(
  qemu: Qemu,
  { directory, facts: { nodes, clusterId } }: StoredCluster,
  signal: AbortSignal,
): Promise<string> {
  const [here, ...running] = await Promise.all([
    qemuVersion(qemu, signal),
    ...nodes.map(async (node) => queryVersion(machineFiles(directory, node).folder, signal)),
  ]);
  const other = running.find((version) => release(version) !== release(here));
  if (other === undefined) return running[0] ?? here;
  throw new ClusterError(
    "engine-failed",
    `Cluster "${clusterId}" cannot be saved: its machines run under QEMU ${other}, and this computer has QEMU ${here} by now.`,
    {
      hint: `Restart the whole cluster, so that it runs under this QEMU: ${runCommand("stop", "run")}, then ${commandName("start")}.`,
      facts: { cluster: clusterId, running: other, here },
    },
  );
}

const silent = "does not answer";

async function runState(files: MachineFiles): Promise<string> {
  if (!(await isRunning(files))) return "does not run";
  const state = await queryRunState(files.folder);
  return state === undefined ? silent : `is ${state}`;
}

/** Memory takes at most its own size, and each disk as much as it does now. */
async function assertRoom(
  { directory, facts }: StoredCluster,
  memoryMegabytes: number,
): Promise<void> {
  const disks = await Promise.all(
    facts.nodes.map(async (node) => usedBytes(machineFiles(directory, node).folder)),
  );
  const bytes =
    disks.reduce((sum, size) => sum + size, 0) + facts.nodes.length * memoryMegabytes * 1024 ** 2;
  await assertFreeSpace(directory, bytes, "Free some space, or delete a snapshot.");
}
