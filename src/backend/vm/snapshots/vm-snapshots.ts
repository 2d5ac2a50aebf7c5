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
import type { Runtime } from "../../../system/runtime.ts";
import type { CopyRequest, FileCopyRequest, Snapshots } from "../../contract.ts";
import type { SnapshotFile, SnapshotRecord } from "../../../model/snapshot.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import { assertIncomplete } from "../../shared/machine-errors.ts";
import { type StoredCluster, assertIdCanBeClaimed, machinesOf } from "../cluster-facts.ts";
import { resolveCopy } from "../copies/resolve-copy.ts";
import { VmCopy } from "../copies/vm-copy.ts";
import { readOwnCluster } from "../machines/launch.ts";
import { type MachineFiles, isRunning, machineFiles } from "../machines/machine-process.ts";
import { queryRunState, queryVersion } from "../qemu/monitor.ts";
import { type Qemu, qemuVersion, release } from "../qemu/qemu.ts";
import { pauseMachines } from "./pause-machines.ts";
import { type Saving as MachinesToSave, saveStates, startReceivers } from "./receivers.ts";
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

interface Saving {
  readonly cluster: ClusterName;
  readonly name: string;
  readonly file: SnapshotFile;
}

/** Snapshots of memory and disks of all machines, as files in the cluster's folder. */
export class VmSnapshots implements Snapshots {
  readonly holdsMemory = true;
  readonly files = {
    save: async (
      cluster: ClusterName,
      name: string,
      file: SnapshotFile,
      signal: AbortSignal,
    ): Promise<void> => this.#save({ cluster, name, file }, signal),
    planCopy: async (request: FileCopyRequest, signal: AbortSignal): Promise<VmCopy> =>
      this.#planFileCopy(request, signal),
  };
  readonly #qemu: Qemu;
  readonly #root: string;
  readonly #runtime: Runtime;

  constructor({ qemu, root }: { readonly qemu: Qemu; readonly root: string }, runtime: Runtime) {
    this.#qemu = qemu;
    this.#root = root;
    this.#runtime = runtime;
  }

  async list({ directory }: ClusterName, _signal: AbortSignal): Promise<readonly SnapshotRecord[]> {
    const records = (await readSnapshotFolders(directory)).map(
      async ({ name, folder, isComplete }) => {
        const facts = await readSnapshotFacts(folder);
        const createdAt = facts === undefined ? undefined : new Date(facts.createdAt);
        return {
          name,
          createdAt,
          sizeBytes: await usedBytes(folder),
          isComplete: isComplete && facts !== undefined,
        };
      },
    );
    return (await Promise.all(records)).toSorted(
      (a, b) => (a.createdAt?.getTime() ?? 0) - (b.createdAt?.getTime() ?? 0),
    );
  }

  async create(cluster: ClusterRecord, name: string, signal: AbortSignal): Promise<void> {
    const { clock, progress } = this.#runtime;
    const { directory } = cluster;
    await using _ = await lockMachines({ ...this.#runtime, signal }, directory);
    const existing = (await readSnapshotFolders(directory)).filter((each) => each.name === name);
    assertIncomplete(
      cluster,
      name,
      existing.some(({ isComplete }) => isComplete),
    );
    const stored = await readOwnCluster(directory);
    await assertAllRun(stored);
    const machines = machinesOf(stored.facts, "had no snapshots", "Create it again to save it.");
    const draft = draftFolder(directory, name);
    await rm(draft, { recursive: true, force: true });
    await makePrivateFolder(snapshotsFolder(directory));
    await assertRoom(stored, machines.memoryMegabytes);
    using step = progress.start("Save memory and disks");
    const createdAt = new Date(clock.now()).toISOString();
    try {
      await mkdir(draft, { mode: 0o700 });
      const savedBy = await this.#saveMachines({ stored, machines, folder: draft, clock }, signal);
      const files = await describeFiles({ folder: draft, nodes: stored.facts.nodes }, signal);
      await writePrivateFile(
        factsPath(draft),
        factsText({ createdAt, qemuVersion: savedBy, machines, files }),
      );
      await rename(draft, snapshotFolder(directory, name));
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      throw error;
    }
    step.done();
  }

  /** Resolves with the version of the QEMU that runs the machines. */
  async #saveMachines(saving: MachinesToSave, signal: AbortSignal): Promise<string> {
    const { directory, facts } = saving.stored;
    const { nodes } = facts;
    const version = await assertSameQemu(this.#qemu, saving.stored, signal);
    await using _ = await startReceivers(this.#qemu, saving, signal);
    {
      await using _paused = await pauseMachines({ directory, nodes }, signal);
      await saveMachines(saving, signal);
    }
    await saveStates(saving, signal);
    return version;
  }

  async restore(cluster: ClusterRecord, name: string, signal: AbortSignal): Promise<void> {
    const { clock, progress } = this.#runtime;
    const { directory } = cluster;
    await using _ = await lockMachines({ ...this.#runtime, signal }, directory);
    const stored = await readOwnCluster(directory);
    const snapshot = await findSnapshot(cluster, name);
    using checking = progress.start("Check the snapshot");
    const saved = await checkSnapshot(
      this.#qemu,
      { cluster, facts: stored.facts, snapshot },
      signal,
    );
    checking.done();
    using step = progress.start("Restore memory and disks");
    await restoreMachines(
      this.#qemu,
      { cluster: stored, folder: snapshot.folder, saved, clock },
      signal,
    );
    step.done();
  }

  async delete(cluster: ClusterName, name: string, signal: AbortSignal): Promise<void> {
    await using _ = await lockMachines({ ...this.#runtime, signal }, cluster.directory);
    const snapshot = await findAnySnapshot(cluster, name);
    const draft = draftFolder(cluster.directory, name);
    if (snapshot.isComplete) {
      await rm(draft, { recursive: true, force: true });
      await rename(snapshot.folder, draft);
    }
    await rm(draft, { recursive: true, force: true });
  }

  async planCopy(request: CopyRequest, signal: AbortSignal): Promise<VmCopy> {
    const [qemu, root, runtime] = [this.#qemu, this.#root, this.#runtime];
    await assertIdCanBeClaimed(root, request.clusterId, runtime.clock);
    const origin = await resolveCopy({ ...runtime, signal }, qemu, request, root);
    return new VmCopy({ qemu, root, request, origin }, runtime);
  }

  async #save({ cluster, name, file }: Saving, signal: AbortSignal): Promise<void> {
    const { saveFile } = await import("../files/save-file.ts");
    await using _ = await lockMachines({ ...this.#runtime, signal }, cluster.directory);
    const stored = await readOwnCluster(cluster.directory);
    const snapshot = await findSnapshot(cluster, name);
    const saved = await assertAllThere(cluster, { facts: stored.facts, snapshot }, signal);
    const { progress } = this.#runtime;
    await saveFile(this.#qemu, { stored, snapshot, saved, progress }, file, signal);
  }

  async #planFileCopy(request: FileCopyRequest, signal: AbortSignal): Promise<VmCopy> {
    const { resolveFile } = await import("../files/resolve-file.ts");
    const [qemu, root, runtime] = [this.#qemu, this.#root, this.#runtime];
    await assertIdCanBeClaimed(root, request.clusterId, runtime.clock);
    const origin = await resolveFile({ ...runtime, signal }, qemu, request);
    return new VmCopy({ qemu, root, request, origin }, runtime);
  }
}

async function assertAllRun({ directory, facts }: StoredCluster): Promise<void> {
  const states = await Promise.all(
    facts.nodes.map(async (node) => ({
      name: nodeReference(node),
      state: await runState(machineFiles(directory, node)),
    })),
  );
  const idle = states.find(({ state }) => state !== "is running");
  if (idle === undefined) return;
  const { name, state } = idle;
  throw new ClusterError(
    "machine-failed",
    `Cluster "${facts.clusterId}" cannot be saved: ${name} ${state}.`,
    {
      hint:
        state === silent
          ? `Restart ${name} by force, or restore another snapshot first.`
          : "Start its nodes, or restore another snapshot first.",
      facts: { cluster: facts.clusterId },
    },
  );
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
