import type { Backend, Snapshots } from "../backend/contract.ts";
import type { SnapshotFile, SnapshotRecord } from "../model/snapshot.ts";
import { ClusterError } from "../errors.ts";
import { type ClusterRecord, nodeReference } from "../model/cluster-record.ts";
import { closeMasterConnections } from "../ssh/session/master-connection.ts";
import type { Work } from "../system/runtime.ts";
import type { Course, NewEvent } from "../model/event.ts";
import { recording } from "./events/record-event.ts";
import { awaitLogins } from "./power.ts";
import { findCluster, withCluster } from "./find-cluster.ts";

export interface SnapshotName {
  readonly clusterId: string;
  readonly name: string;
}

/**
 * Saves all nodes of a cluster. Throws `snapshot-exists`, `machine-failed`, `capacity-lacking` and
 * the like; then there is no snapshot.
 */
export async function createSnapshot(
  work: Work,
  backend: Backend<unknown>,
  { clusterId, name }: SnapshotName,
): Promise<void> {
  const snapshots = snapshotsOf(backend);
  const create = async (cluster: ClusterRecord): Promise<void> =>
    recording(cluster.directory, eventsOf("create", name), work, async () =>
      snapshots.create(cluster, name, work.signal),
    );
  await withCluster(backend, clusterId, create, work.signal);
}

const eventsOf =
  (action: string, name: string, nodes?: readonly string[]) =>
  (course: Course): NewEvent => ({
    kind: "snapshot",
    action,
    name,
    ...(nodes !== undefined && { nodes }),
    course,
  });

/**
 * Writes a snapshot to a file. Throws `snapshot-not-found`, `snapshot-unusable`, `bad-usage`,
 * `capacity-lacking`; then there is no file.
 */
export async function saveSnapshot(
  backend: Backend<unknown>,
  { clusterId, name, file }: SnapshotName & { readonly file: SnapshotFile },
  signal: AbortSignal,
): Promise<void> {
  const snapshots = snapshotsOf(backend);
  await withCluster(
    backend,
    clusterId,
    async (cluster) => snapshots.save(cluster, name, file, signal),
    signal,
  );
}

export async function listSnapshots(
  backend: Backend<unknown>,
  clusterId: string,
  signal: AbortSignal,
): Promise<readonly SnapshotRecord[]> {
  const snapshots = snapshotsOf(backend);
  return snapshots.list(await findCluster(backend, clusterId, signal), signal);
}

export async function deleteSnapshot(
  backend: Backend<unknown>,
  { clusterId, name }: SnapshotName,
  signal: AbortSignal,
): Promise<void> {
  const snapshots = snapshotsOf(backend);
  await withCluster(
    backend,
    clusterId,
    async (cluster) => snapshots.delete(cluster, name, signal),
    signal,
  );
}

/**
 * Puts all nodes of a cluster back. Resolves with the restored cluster when all its nodes accept
 * logins, if this machine has its key. Throws `snapshot-not-found`, `snapshot-unusable` and the
 * like before it touches anything.
 */
export async function restoreSnapshot(
  work: Work,
  backend: Backend<unknown>,
  { clusterId, name }: SnapshotName,
): Promise<ClusterRecord> {
  const snapshots = snapshotsOf(backend);
  const restore = async (before: ClusterRecord): Promise<ClusterRecord> => {
    const events = eventsOf("restore", name, before.nodes.map(nodeReference));
    await recording(before.directory, events, work, async () =>
      snapshots.restore(before, name, work.signal),
    );
    // The nodes know nothing of connections that were opened after the snapshot.
    await closeMasterConnections(before.directory, work.environment);
    const cluster = await findCluster(backend, clusterId, work.signal);
    const { holdsMemory } = snapshots;
    await awaitLogins(work, cluster, {
      setsClocks: holdsMemory,
      reseeds: holdsMemory,
      areBooting: false,
      power: backend.local?.power,
    });
    return cluster;
  };
  return withCluster(backend, clusterId, restore, work.signal);
}

function snapshotsOf({ name, local }: Backend<unknown>): Snapshots {
  if (local !== undefined) return local.snapshots;
  throw new ClusterError("bad-usage", `Clusters of this kind (${name}) have no snapshots.`);
}
