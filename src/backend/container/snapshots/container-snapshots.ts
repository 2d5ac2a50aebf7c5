import { ClusterError } from "../../../errors.ts";
import {
  type ClusterName,
  type ClusterRecord,
  nodeCount,
  nodeReference,
} from "../../../model/cluster-record.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { makePrivateFolder } from "../../../system/files/private-file.ts";
import type { Runtime } from "../../../system/runtime.ts";
import type { SnapshotFile, SnapshotRecord } from "../../../model/snapshot.ts";
import type { CopyRequest, Creation, FileCopyRequest, Snapshots } from "../../contract.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import { assertIncomplete, notWhole } from "../../shared/machine-errors.ts";
import { readEngineFacts } from "../engine/choose-engine.ts";
import type { Engine } from "../engine/engine.ts";
import { restoreNetwork } from "../launch/create-network.ts";
import { allowReboots } from "../launch/self-reboot.ts";
import type { NodeContainer } from "../records/read-containers.ts";
import { readInventory } from "../records/records.ts";
import { removeCreation } from "../remove-creation.ts";
import { ContainerCopy } from "../copies/container-copy.ts";
import { haveAddresses, snapshotOrigin } from "../copies/copy-origin.ts";
import { assertSnapshotSpace } from "./assert-space.ts";
import { deleteSnapshots, removeImages } from "./remove-snapshots.ts";
import {
  type SavedSnapshot,
  createdAt,
  findSavedNodes,
  findSnapshot,
  readSnapshots,
} from "./read-snapshots.ts";
import { nodeRights, restoreNodes, saveNodes } from "./saved-nodes.ts";

const atOnce = 6;

/** Snapshots of the nodes' file systems, as images and volumes of the engine. */
export class ContainerSnapshots implements Snapshots {
  readonly holdsMemory = false;
  readonly files = {
    save: async (
      cluster: ClusterName,
      name: string,
      file: SnapshotFile,
      signal: AbortSignal,
    ): Promise<void> => this.#save(cluster, name, file, signal),
    planCopy: async (request: FileCopyRequest, signal: AbortSignal): Promise<Creation> =>
      this.#planFileCopy(request, signal),
  };
  readonly #engine: Engine;
  readonly #root: string;
  readonly #runtime: Runtime;

  constructor(engine: Engine, root: string, runtime: Runtime) {
    this.#engine = engine;
    this.#root = root;
    this.#runtime = runtime;
  }

  async list(cluster: ClusterName, signal: AbortSignal): Promise<readonly SnapshotRecord[]> {
    return mapConcurrently(
      await this.#read(cluster, signal),
      atOnce,
      async (each) => this.#record(each, signal),
      signal,
    );
  }

  async create(cluster: ClusterRecord, name: string, signal: AbortSignal): Promise<void> {
    await using _ = await this.#lock(cluster, signal);
    const existing = (await this.#read(cluster, signal)).find((snapshot) => snapshot.name === name);
    assertIncomplete(cluster, name, existing?.nodes !== undefined);
    const containers = await this.#runningContainers(cluster, signal);
    const facts = await readEngineFacts(this.#engine, signal);
    const image = containers[0]?.imageId ?? "";
    const { rights } = await nodeRights(this.#engine, { image, root: this.#root, facts }, signal);
    if (existing !== undefined) await deleteSnapshots(this.#engine, [existing], signal);
    using space = this.#runtime.progress.start("Check the engine's free space");
    const { environment } = this.#runtime;
    await assertSnapshotSpace(this.#engine, containers, { facts, environment }, signal);
    space.done();
    using step = this.#runtime.progress.start("Save file systems");
    try {
      const { clock } = this.#runtime;
      const incomplete = await saveNodes(
        this.#engine,
        { containers, snapshot: name, rights, clock },
        signal,
      );
      if (incomplete.length > 0) this.#runtime.progress.warn(withoutAttributes(incomplete));
      await findSavedNodes(this.#engine, { cluster, name }, neverAborted());
    } catch (error) {
      await this.#undo(cluster, name);
      throw error;
    }
    step.done();
  }

  async restore(cluster: ClusterRecord, name: string, signal: AbortSignal): Promise<void> {
    await using _ = await this.#lock(cluster, signal);
    const nodes = await findSavedNodes(this.#engine, { cluster, name }, signal);
    const { rights, system } = await nodeRights(
      this.#engine,
      { image: nodes[0].image, root: this.#root },
      signal,
    );
    const { clock, progress } = this.#runtime;
    using step = progress.start("Restore file systems");
    const own = { clusterId: cluster.id, creationId: cluster.creationId, keepsNetworks: true };
    const { networks } = await readInventory(
      this.#engine,
      { clusterId: cluster.id },
      this.#root,
      signal,
    );
    const network = networks.find(({ creationId }) => creationId === cluster.creationId);
    if (network !== undefined) await restoreNetwork(this.#engine, network, signal);
    const left = await removeCreation(this.#engine, own, clock, signal);
    if (left !== undefined)
      throw new ClusterError("engine-failed", left, { hint: "Restore again." });
    const containers = await restoreNodes(this.#engine, { nodes, system, rights }, signal);
    await mapConcurrently(
      containers,
      atOnce,
      async (node) => allowReboots(this.#engine, node, progress),
      signal,
    );
    await removeImages(this.#engine, cluster.creationId, signal);
    step.done();
  }

  async delete(cluster: ClusterName, name: string, signal: AbortSignal): Promise<void> {
    await using _ = await this.#lock(cluster, signal);
    await deleteSnapshots(
      this.#engine,
      [await findSnapshot(this.#engine, { cluster, name }, signal)],
      signal,
    );
  }

  async #lock({ directory }: ClusterName, signal: AbortSignal): Promise<AsyncDisposable> {
    await makePrivateFolder(this.#root);
    return lockMachines({ ...this.#runtime, signal }, directory);
  }

  async #read({ creationId }: ClusterName, signal: AbortSignal): Promise<readonly SavedSnapshot[]> {
    return readSnapshots(this.#engine, { creationId }, signal);
  }

  async #record(snapshot: SavedSnapshot, signal: AbortSignal): Promise<SnapshotRecord> {
    const { name, images, nodes } = snapshot;
    const sizes = await Promise.all(
      images.map(
        async ({ names: [image = ""], volumeKilobytes }) =>
          (await ownBytes(this.#engine, image, signal)) + volumeKilobytes * 1024,
      ),
    );
    const sizeBytes = sizes.reduce((sum, size) => sum + size, 0);
    return { name, createdAt: createdAt(snapshot), sizeBytes, isComplete: nodes !== undefined };
  }

  /** All nodes. Throws `machine-failed` if one is missing or stands still. */
  async #runningContainers(
    cluster: ClusterRecord,
    signal: AbortSignal,
  ): Promise<readonly NodeContainer[]> {
    const { id: clusterId, creationId } = cluster;
    const inventory = await readInventory(this.#engine, { clusterId }, this.#root, signal);
    const containers = inventory.containers.filter(
      (container) => container.creationId === creationId,
    );
    const counts = inventory.networks.find((network) => network.creationId === creationId)?.counts;
    const idle = containers.find(({ status }) => status !== "running");
    const isWhole = counts !== undefined && containers.length === nodeCount(counts);
    if (idle === undefined && isWhole) return containers;
    const state = idle?.status === "exited" ? "stopped" : idle?.status;
    const problem =
      idle === undefined ? "some of its nodes are missing" : `${nodeReference(idle)} is ${state}`;
    throw new ClusterError(
      "machine-failed",
      `Cluster "${clusterId}" cannot be saved: ${problem}.`,
      {
        hint: "Start its nodes, or restore another snapshot first.",
        facts: { cluster: clusterId },
      },
    );
  }

  async planCopy(request: CopyRequest, signal: AbortSignal): Promise<Creation> {
    const [engine, root, runtime] = [this.#engine, this.#root, this.#runtime];
    const origin = await snapshotOrigin({ ...runtime, signal }, engine, request);
    return ContainerCopy.plan({ ...runtime, signal }, { engine, root, request, origin });
  }

  async #planFileCopy(request: FileCopyRequest, signal: AbortSignal): Promise<Creation> {
    const { fileOrigin } = await import("../files/file-origin.ts");
    const [engine, root, runtime] = [this.#engine, this.#root, this.#runtime];
    const origin = await fileOrigin({ ...runtime, signal }, engine, { request, root });
    return ContainerCopy.plan({ ...runtime, signal }, { engine, root, request, origin });
  }

  async #save(
    cluster: ClusterName,
    name: string,
    file: SnapshotFile,
    signal: AbortSignal,
  ): Promise<void> {
    const { saveFile } = await import("../files/save-file.ts");
    await using _ = await this.#lock(cluster, signal);
    const nodes = await findSavedNodes(this.#engine, { cluster, name }, signal);
    if (!haveAddresses(nodes)) throw notWhole(cluster, name);
    const { progress } = this.#runtime;
    await saveFile(
      this.#engine,
      { cluster, snapshot: name, nodes, root: this.#root, progress },
      file,
      signal,
    );
  }

  async #undo(cluster: ClusterName, name: string): Promise<void> {
    const begun = (await this.#read(cluster, neverAborted())).filter(
      (snapshot) => snapshot.name === name,
    );
    await deleteSnapshots(this.#engine, begun, neverAborted());
  }
}

const withoutAttributes = (nodes: readonly string[]): string =>
  `Not saved: extended attributes, access lists and holes of files on ${nodes.join(", ")}, where python3 is missing.`;

const neverAborted = (): AbortSignal => new AbortController().signal;

const unitBytes: Readonly<Record<string, number>> = {
  "": 1,
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
};

/** Returns the bytes that an image's last step added; 0 if the engine doesn't say. */
export async function ownBytes(
  engine: Engine,
  image: string,
  signal: AbortSignal,
): Promise<number> {
  const text = await engine.ask(
    { words: ["history", "--format={{.Size}}", image], accepts: () => true },
    signal,
  );
  return parseSize(text.split("\n")[0] ?? "");
}

/** Reads `4.61 kB` (Podman) or `4.61kB` (Docker). */
export function parseSize(text: string): number {
  const [, number, unit = ""] = /^([0-9.]+) ?([kKMGT]?B?)$/.exec(text) ?? [];
  return Math.round(Number(number ?? 0) * (unitBytes[unit] ?? 0));
}
