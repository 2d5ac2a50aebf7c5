import type { Backend, SnapshotRecord, Snapshots } from "../backend/contract.ts";
import { ClusterError } from "../errors.ts";
import { type ClusterRecord, nodeReference } from "../model/cluster-record.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { closeMasterConnections } from "../ssh/session/master-connection.ts";
import { mapConcurrently } from "../system/concurrency.ts";
import { retry } from "../system/retry.ts";
import type { Runtime } from "../system/runtime.ts";
import { ruleOf, waits } from "../system/waits.ts";
import { clusterKey, openConnections } from "./connections.ts";
import { findCluster } from "./find-cluster.ts";

const loginsAtOnce = 20;

/** Names a snapshot of a cluster. */
export interface SnapshotName {
  readonly clusterId: string;
  readonly name: string;
}

/** Saves all nodes of a cluster. Throws `snapshot-exists`, `machine-failed`, `capacity-lacking` and the like; then there is no snapshot. */
export async function createSnapshot(
  backend: Backend<unknown>,
  { clusterId, name }: SnapshotName,
  signal: AbortSignal,
): Promise<void> {
  const snapshots = snapshotsOf(backend);
  await snapshots.create(await findCluster(backend, clusterId, signal), name, signal);
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
  await snapshots.delete(await findCluster(backend, clusterId, signal), name, signal);
}

/**
 * Puts all nodes of a cluster back. Resolves with the restored cluster when all its nodes accept logins, if this machine has its key. Throws
 * `snapshot-not-found`, `snapshot-unusable` and the like before it touches anything.
 */
export async function restoreSnapshot(
  backend: Backend<unknown>,
  { clusterId, name }: SnapshotName,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const snapshots = snapshotsOf(backend);
  const before = await findCluster(backend, clusterId, signal);
  await snapshots.restore(before, name, signal);
  // The nodes know nothing of connections that were opened after the snapshot.
  await closeMasterConnections(before.directory, runtime.environment);
  const cluster = await findCluster(backend, clusterId, signal);
  if (!(await clusterKey(cluster)).isHere) {
    runtime.progress.note("This machine doesn't have the cluster's key, so nobody waits for its nodes.");
    return cluster;
  }
  using step = runtime.progress.start("Log in to the nodes");
  await using connections = openConnections(cluster.directory, runtime);
  await mapConcurrently(
    cluster.nodes,
    loginsAtOnce,
    async (node) => awaitLogin({ node, connections, setsClock: snapshots.holdsMemory }, runtime, signal),
    signal,
  );
  step.done();
  return cluster;
}

interface Login {
  readonly node: ClusterRecord["nodes"][number];
  readonly connections: ConnectionPool;
  /** Whether the node's clock stands where it was when the snapshot was made. */
  readonly setsClock: boolean;
}

async function awaitLogin(
  { node, connections, setsClock }: Login,
  { clock }: Runtime,
  signal: AbortSignal,
): Promise<void> {
  const logIn = async (): Promise<void> => {
    const connection = await connections.connect(node, signal);
    if (!setsClock) return;
    const time = `@${(clock.now() / 1000).toFixed(3)}`;
    const set = {
      argv: ["date", `--set=${time}`],
      sudo: true,
      limitMs: waits.continuedLogin.limitMs,
      task: "setting its clock",
    };
    const { status, stderr } = await connection.run(set, signal);
    if (status === 0) return;
    throw new ClusterError(
      "remote-command-failed",
      `The clock of ${nodeReference(node)} cannot be set: ${stderr.trim()}.`,
    );
  };
  await retry(logIn, ruleOf(waits.continuedLogin, clock), signal);
}

function snapshotsOf({ name, snapshots }: Backend<unknown>): Snapshots {
  if (snapshots !== undefined) return snapshots;
  throw new ClusterError("bad-usage", `Clusters of this kind (${name}) have no snapshots.`);
}
