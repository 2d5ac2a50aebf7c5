import type { SnapshotRecord, Snapshots } from "../../contract.ts";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { type ClusterName, type ClusterRecord, nodeReference } from "../../../model/cluster-record.ts";
import { nodeCount } from "../../../model/cluster-record.ts";
import { makePrivateFolder } from "../../../system/files/private-file.ts";
import { mapConcurrently } from "../../../system/map-concurrently.ts";
import type { Runtime } from "../../../system/runtime.ts";
import { lockMachines } from "../../lock-machines.ts";
import { assertIncomplete, notWhole, snapshotNotFound } from "../../snapshot-errors.ts";
import type { Engine } from "../engine/engine.ts";
import { readEngineFacts } from "../engine/engine-facts.ts";
import { rememberedRights } from "../launch/system-flags.ts";
import { type Rights, systemFlags, type SystemFlags } from "../launch/system-flags.ts";
import { readInventory } from "../records/inventory.ts";
import type { NodeContainer } from "../records/read-containers.ts";
import { removeContainers } from "../remove-creation.ts";
import { deleteSnapshots, removeImages } from "./delete-snapshots.ts";
import { ownBytes } from "./image-size.ts";
import { createdAt, readSnapshots, type SavedSnapshot } from "./read-snapshots.ts";
import { restoreNodes } from "./restore-nodes.ts";
import { saveNodes } from "./save-nodes.ts";

const atOnce = 6;

/**
 * Snapshots of the nodes' file systems, as images and volumes of the engine. `root` is the folder of this machine's
 * creations.
 */
export class ContainerSnapshots implements Snapshots {
  readonly holdsMemory = false;
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
    const { rights } = await this.#rights(containers[0]?.imageId ?? "", signal);
    if (existing !== undefined) await deleteSnapshots(this.#engine, [existing], signal);
    using step = this.#runtime.progress.start("Save file systems");
    try {
      await saveNodes(this.#engine, { containers, snapshot: name, rights }, signal);
      if ((await this.#find(cluster, name, neverAborted())).nodes === undefined) throw notWhole(cluster, name);
    } catch (error) {
      await this.#undo(cluster, name);
      throw error;
    }
    step.done();
  }

  async restore(cluster: ClusterRecord, name: string, signal: AbortSignal): Promise<void> {
    await using _ = await this.#lock(cluster, signal);
    const { nodes } = await this.#find(cluster, name, signal);
    const [first] = nodes ?? [];
    if (nodes === undefined || first === undefined) throw notWhole(cluster, name);
    const { rights, system } = await this.#rights(first.image, signal);
    const { clock, progress } = this.#runtime;
    using step = progress.start("Restore file systems");
    const own = { clusterId: cluster.id, creationId: cluster.creationId };
    const left = await removeContainers(this.#engine, own, clock, signal);
    if (left !== undefined) throw new ClusterError("engine-failed", left, { hint: "Restore again." });
    await restoreNodes(this.#engine, { nodes, system, rights }, signal);
    await removeImages(this.#engine, cluster.creationId, signal);
    step.done();
  }

  async delete(cluster: ClusterName, name: string, signal: AbortSignal): Promise<void> {
    await using _ = await this.#lock(cluster, signal);
    await deleteSnapshots(this.#engine, [await this.#find(cluster, name, signal)], signal);
  }

  async #lock({ directory }: ClusterName, signal: AbortSignal): Promise<AsyncDisposable> {
    await makePrivateFolder(this.#root);
    return lockMachines(directory, this.#runtime, signal);
  }

  async #read({ creationId }: ClusterName, signal: AbortSignal): Promise<readonly SavedSnapshot[]> {
    return readSnapshots(this.#engine, { creationId }, signal);
  }

  async #find(cluster: ClusterName, name: string, signal: AbortSignal): Promise<SavedSnapshot> {
    const snapshots = await this.#read(cluster, signal);
    const found = snapshots.find((snapshot) => snapshot.name === name);
    if (found !== undefined) return found;
    throw snapshotNotFound(
      cluster,
      name,
      snapshots.map((snapshot) => snapshot.name),
    );
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
  async #runningContainers(cluster: ClusterRecord, signal: AbortSignal): Promise<readonly NodeContainer[]> {
    const { id: clusterId, creationId } = cluster;
    const inventory = await readInventory(this.#engine, { clusterId }, this.#root, signal);
    const containers = inventory.containers.filter((container) => container.creationId === creationId);
    const counts = inventory.networks.find((network) => network.creationId === creationId)?.counts;
    const idle = containers.find(({ status }) => status !== "running");
    const isWhole = counts !== undefined && containers.length === nodeCount(counts);
    if (idle === undefined && isWhole) return containers;
    const problem = idle === undefined ? "some of its nodes are missing" : `${nodeReference(idle)} is ${idle.status}`;
    throw new ClusterError("machine-failed", `Cluster "${clusterId}" cannot be saved: ${problem}.`, {
      hint: "Restore another snapshot first, or create the cluster again.",
      facts: { cluster: clusterId },
    });
  }

  async #rights(
    image: string,
    signal: AbortSignal,
  ): Promise<{ readonly rights: readonly string[]; readonly system: SystemFlags }> {
    const { kind } = this.#engine;
    const facts = await readEngineFacts(this.#engine, signal);
    const memory = join(this.#root, ".rights");
    const rights: Rights = await rememberedRights(this.#engine, { facts, image, memory }, signal);
    return { rights: [...kind.systemWords, ...rights.words], system: systemFlags(kind, facts, rights) };
  }

  async #undo(cluster: ClusterName, name: string): Promise<void> {
    const begun = (await this.#read(cluster, neverAborted())).filter((snapshot) => snapshot.name === name);
    await deleteSnapshots(this.#engine, begun, neverAborted());
  }
}

const neverAborted = (): AbortSignal => new AbortController().signal;
