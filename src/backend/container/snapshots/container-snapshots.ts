import { numbered } from "../../../system/amounts.ts";
import { join } from "node:path";
import { ClusterError, messageOf } from "../../../errors.ts";
import { type ClusterName, type ClusterRecord, nodeCount, nodeReference } from "../../../model/cluster-record.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { makePrivateFolder } from "../../../system/files/private-file.ts";
import { poll } from "../../../system/retry.ts";
import type { Clock, Runtime } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import type { SnapshotRecord } from "../../../model/snapshot.ts";
import type { Snapshots } from "../../contract.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import { assertIncomplete, notWhole, snapshotNotFound } from "../../shared/machine-errors.ts";
import { readEngineFacts } from "../engine/choose-engine.ts";
import { means } from "../engine/engine-errors.ts";
import type { Engine } from "../engine/engine.ts";
import { type Rights, type SystemFlags, rememberedRights, systemFlags } from "../launch/system-flags.ts";
import { type CreationName, labelNames } from "../records/labels.ts";
import type { NodeContainer } from "../records/read-containers.ts";
import { readInventory } from "../records/records.ts";
import { removeContainers } from "../remove-creation.ts";
import { type SavedSnapshot, createdAt, readSnapshots } from "./read-snapshots.ts";
import { restoreNodes, saveNodes } from "./saved-nodes.ts";

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
      hint: "Start its nodes, or restore another snapshot first.",
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

const unitBytes: Readonly<Record<string, number>> = { "": 1, B: 1, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };

/** Returns the bytes that an image's last step added; 0 if the engine doesn't say. */
export async function ownBytes(engine: Engine, image: string, signal: AbortSignal): Promise<number> {
  const text = await engine.ask({ words: ["history", "--format={{.Size}}", image], accepts: () => true }, signal);
  return parseSize(text.split("\n")[0] ?? "");
}

/** Reads `4.61 kB` (Podman) or `4.61kB` (Docker). */
export function parseSize(text: string): number {
  const [, number, unit = ""] = /^([0-9.]+) ?([kKMGT]?B?)$/.exec(text) ?? [];
  return Math.round(Number(number ?? 0) * (unitBytes[unit] ?? 0));
}

const removalsAtOnce = 6;

/** Deletes snapshots. Nodes that were restored from one keep its layers until they are removed. */
async function deleteSnapshots(
  engine: Engine,
  snapshots: readonly SavedSnapshot[],
  signal: AbortSignal,
): Promise<void> {
  const accepts = (stderr: string): boolean => means(stderr, "gone");
  const tasks = snapshots.flatMap(({ images, volumes }) => [
    ...images.flatMap(({ names }) => names.map((name) => engine.kind.untagWords(name))),
    ...volumes.map(({ volume }) => ["volume", "rm", volume]),
  ]);
  await mapConcurrently(tasks, removalsAtOnce, async (words) => engine.change({ words, accepts }), signal);
  const creationIds = new Set(snapshots.map(({ creationId }) => creationId));
  for (const creationId of creationIds) await removeImages(engine, creationId, signal);
}

/**
 * Deletes all snapshots of a creation whose containers are gone. Resolves with a sentence about what is left, if
 * anything.
 */
export async function deleteAllSnapshots(
  engine: Engine,
  { creationId }: Pick<CreationName, "creationId">,
  clock: Clock,
  signal: AbortSignal,
): Promise<string | undefined> {
  const problem: { text?: string | undefined } = {};
  const look = async (): Promise<true | undefined> => {
    try {
      await deleteSnapshots(engine, await readSnapshots(engine, { creationId }, signal), signal);
      const left = await removeImages(engine, creationId, signal);
      problem.text = left.length === 0 ? undefined : `Left behind: ${numbered(left.length, "image")} of its snapshots.`;
    } catch (error) {
      signal.throwIfAborted();
      problem.text = `Left behind: snapshots (${messageOf(error)}).`;
    }
    return problem.text === undefined ? true : undefined;
  };
  await poll(look, ruleOf(waits.imageRemoval, clock), signal);
  return problem.text;
}

/**
 * Removes images without a name that no container uses any more. Resolves with the ids of those that are still in use.
 * An image on which another one is built goes after that one.
 */
export async function removeImages(
  engine: Engine,
  creationId: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const filters = ["--filter=dangling=true", `--filter=label=${labelNames.snapshot}`];
  const words = [
    "images",
    "--quiet",
    "--no-trunc",
    ...filters,
    `--filter=label=${labelNames.creationId}=${creationId}`,
  ];
  for (let before = Infinity; ;) {
    const ids = (await engine.ask({ words }, signal)).split("\n").filter((id) => /^(?:sha256:)?[0-9a-f]{64}$/.test(id));
    if (ids.length === 0 || ids.length >= before) return ids;
    before = ids.length;
    const accepts = (stderr: string): boolean => means(stderr, "gone") || means(stderr, "inUse");
    await mapConcurrently(ids, 1, async (id) => engine.change({ words: ["image", "rm", id], accepts }), signal);
  }
}
