import type { ClusterName } from "../../../model/cluster-record.ts";
import { notWhole, snapshotNotFound } from "../../snapshot-errors.ts";
import { readSnapshotFolders, type StoredSnapshot } from "./snapshot-files.ts";

/** Finds a complete snapshot. Throws `snapshot-not-found`, or `snapshot-unusable` if only a part of it is there. */
export async function findSnapshot(cluster: ClusterName, name: string): Promise<StoredSnapshot> {
  const snapshot = await findAnySnapshot(cluster, name);
  if (snapshot.isComplete) return snapshot;
  throw notWhole(cluster, name);
}

/** Finds a snapshot, complete or not. Throws `snapshot-not-found`. */
export async function findAnySnapshot(cluster: ClusterName, name: string): Promise<StoredSnapshot> {
  const snapshots = await readSnapshotFolders(cluster.directory);
  const found = snapshots.filter((snapshot) => snapshot.name === name);
  const best = found.find(({ isComplete }) => isComplete) ?? found[0];
  if (best !== undefined) return best;
  throw snapshotNotFound(cluster, name, [...new Set(snapshots.map((snapshot) => snapshot.name))]);
}
