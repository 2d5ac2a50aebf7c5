import { ClusterError } from "../../../errors.ts";
import {
  type ClusterName,
  type ClusterRecord,
  nodeCount,
  nodeReference,
} from "../../../model/cluster-record.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { makePrivateFolder } from "../../../system/files/private-file.ts";
import type { Runtime, Work } from "../../../system/runtime.ts";
import type { SnapshotRecord } from "../../../model/snapshot.ts";
import type { CopyRequest, FileCopyRequest, Snapshots } from "../../contract.ts";
import { lockMachines } from "../../shared/lock-machines.ts";
import { assertIncomplete, notRunning, notWhole } from "../../shared/machine-errors.ts";
import { assertLimitsWork } from "../engine/assert-usable.ts";
import { type Engine, readEngineFacts } from "../engine/engine.ts";
import { restoreNetwork } from "../launch/create-network.ts";
import { allowReboots } from "../launch/self-reboot.ts";
import type { NodeContainer } from "../records/read-containers.ts";
import { readInventory } from "../records/records.ts";
import { removeCreation } from "../remove-creation.ts";
import { ContainerCopy } from "../copies/container-copy.ts";
import { type CopyOrigin, haveAddresses, snapshotOrigin } from "../copies/copy-origin.ts";
import { assertSnapshotSpace } from "./assert-space.ts";
import { deleteSnapshots, removeImages } from "./remove-snapshots.ts";
import {
  type SavedSnapshot,
  createdAt,
  findRestorableNodes,
  findSavedNodes,
  findSnapshot,
  readSnapshots,
} from "./read-snapshots.ts";
import { nodeRights, restoreNodes, saveNodes } from "./saved-nodes.ts";

const atOnce = 6;

/** Snapshots of the nodes' file systems, as images and volumes of the engine. */
export function containerSnapshots(engine: Engine, root: string, runtime: Runtime): Snapshots {
  const lock = async (
    { directory }: ClusterName,
    signal: AbortSignal,
  ): Promise<AsyncDisposable> => {
    await makePrivateFolder(root);
    return lockMachines({ ...runtime, signal }, directory);
  };
  return {
    holdsMemory: false,
    list: async (cluster, signal) =>
      mapConcurrently(
        await readSnapshots(engine, cluster, signal),
        atOnce,
        async (snapshot) => recordOf(engine, snapshot, signal),
        signal,
      ),
    create: async (cluster, name, signal) => {
      await using _ = await lock(cluster, signal);
      await create({ ...runtime, signal }, { engine, root, cluster, name });
    },
    restore: async (cluster, name, signal) => {
      await using _ = await lock(cluster, signal);
      await restore({ ...runtime, signal }, { engine, root, cluster, name });
    },
    delete: async (cluster, name, signal) => {
      await using _ = await lock(cluster, signal);
      await deleteSnapshots(
        engine,
        [await findSnapshot(engine, { cluster, name }, signal)],
        signal,
      );
    },
    save: async (cluster, name, file, signal) => {
      const { saveFile } = await import("../files/save-file.ts");
      await using _ = await lock(cluster, signal);
      const nodes = await findSavedNodes(engine, { cluster, name }, signal);
      if (!haveAddresses(nodes)) throw notWhole(cluster, name);
      const { progress } = runtime;
      await saveFile(engine, { cluster, snapshot: name, nodes, root, progress }, file, signal);
    },
    planCopy: async (request, signal) => {
      const work = { ...runtime, signal };
      const origin = await originOf(work, engine, request, root);
      return ContainerCopy.plan(work, { engine, root, request, origin });
    },
  };
}

async function originOf(
  work: Work,
  engine: Engine,
  request: CopyRequest | FileCopyRequest,
  root: string,
): Promise<CopyOrigin> {
  if ("source" in request) return snapshotOrigin(work, engine, request);
  const { fileOrigin } = await import("../files/file-origin.ts");
  return fileOrigin(work, engine, { request, root });
}

interface NamedSnapshot {
  readonly engine: Engine;
  /** The folder of this backend's state. */
  readonly root: string;
  readonly cluster: ClusterRecord;
  readonly name: string;
}

async function create(
  { environment, clock, progress, signal }: Work,
  { engine, root, cluster, name }: NamedSnapshot,
): Promise<void> {
  const findExisting = async (within: AbortSignal) =>
    (await readSnapshots(engine, cluster, within)).filter((snapshot) => snapshot.name === name);
  const existing = await findExisting(signal);
  assertIncomplete(cluster, name, existing[0]?.nodes !== undefined);
  const containers = await runningContainers(engine, cluster, root, signal);
  const facts = await readEngineFacts(engine, signal);
  const image = containers[0]?.imageId ?? "";
  const { rights } = await nodeRights(engine, { image, root, facts }, signal);
  await deleteSnapshots(engine, existing, signal);
  using space = progress.start("Check the engine's free space");
  await assertSnapshotSpace(engine, containers, { facts, environment }, signal);
  space.done();
  using step = progress.start("Save file systems");
  try {
    const saving = { containers, snapshot: name, rights, clock };
    const incomplete = await saveNodes(engine, saving, signal);
    if (incomplete.length > 0) progress.warn(withoutAttributes(incomplete));
    await findSavedNodes(engine, { cluster, name }, neverAborted());
  } catch (error) {
    await deleteSnapshots(engine, await findExisting(neverAborted()), neverAborted());
    throw error;
  }
  step.done();
}

async function restore(
  { clock, progress, signal }: Work,
  { engine, root, cluster, name }: NamedSnapshot,
): Promise<void> {
  const { id: clusterId, creationId } = cluster;
  const nodes = await findRestorableNodes(engine, { cluster, name }, signal);
  const facts = await readEngineFacts(engine, signal);
  // Before the nodes are removed: what is delegated to a rootless engine may have changed.
  for (const { settings } of nodes) assertLimitsWork(engine.kind, facts, settings.limits);
  const { image } = nodes[0];
  const { rights, system } = await nodeRights(engine, { image, root, facts }, signal);
  using step = progress.start("Restore file systems");
  const { networks } = await readInventory(engine, { clusterId }, root, signal);
  const network = networks.find((each) => each.creationId === creationId);
  if (network !== undefined) await restoreNetwork(engine, network, signal);
  const own = { clusterId, creationId, keepsNetworks: true };
  const left = await removeCreation(engine, own, clock, signal);
  if (left !== undefined) throw new ClusterError("engine-failed", left, { hint: "Restore again." });
  const containers = await restoreNodes(engine, { nodes, system, rights }, signal);
  await allowReboots({ engine, progress }, containers, signal);
  await removeImages(engine, creationId, signal);
  step.done();
}

async function recordOf(
  engine: Engine,
  snapshot: SavedSnapshot,
  signal: AbortSignal,
): Promise<SnapshotRecord> {
  const { name, images, nodes } = snapshot;
  const sizes = await Promise.all(
    images.map(
      async ({ names: [image = ""], volumeKilobytes }) =>
        (await ownBytes(engine, image, signal)) + volumeKilobytes * 1024,
    ),
  );
  const sizeBytes = sizes.reduce((sum, size) => sum + size, 0);
  return { name, createdAt: createdAt(snapshot), sizeBytes, isComplete: nodes !== undefined };
}

/** All nodes. Throws `machine-failed` if one is missing or stands still. */
async function runningContainers(
  engine: Engine,
  { id: clusterId, creationId }: ClusterRecord,
  root: string,
  signal: AbortSignal,
): Promise<readonly NodeContainer[]> {
  const inventory = await readInventory(engine, { clusterId }, root, signal);
  const containers = inventory.containers.filter((each) => each.creationId === creationId);
  const counts = inventory.networks.find((network) => network.creationId === creationId)?.counts;
  const idle = containers.find(({ status }) => status !== "running");
  const isWhole = counts !== undefined && containers.length === nodeCount(counts);
  if (idle === undefined && isWhole) return containers;
  const state = idle?.status === "exited" ? "stopped" : idle?.status;
  const problem =
    idle === undefined ? "some of its nodes are missing" : `${nodeReference(idle)} is ${state}`;
  throw notRunning(clusterId, problem);
}

const withoutAttributes = (nodes: readonly string[]): string =>
  `Not saved: extended attributes, access lists, holes and times before 1970 of files on ${nodes.join(", ")}, where python3 is missing.`;

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
