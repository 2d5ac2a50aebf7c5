import type { Backend } from "../backend/contract.ts";
import type { Environment, Work } from "../system/runtime.ts";
import { mapConcurrently } from "../system/concurrency.ts";
import { ClusterError } from "../errors.ts";
import { commandName } from "../references.ts";
import { findCluster } from "./find-cluster.ts";
import type { ClusterName, ClusterRecord } from "../model/cluster-record.ts";
import { closeMasterConnections } from "../ssh/session/master-connection.ts";
import { endRemovedCreation } from "../store/creation-folder.ts";

const atOnce = 4;

/**
 * Removes the cluster with this id, and what another creation of the same id may have left. Throws
 * `cluster-not-found`, and the backend's own errors if something is left.
 */
export async function destroyCluster(
  work: Pick<Work, "progress" | "environment" | "signal">,
  backend: Backend<unknown>,
  clusterId: string,
): Promise<void> {
  const done = new Set<string>();
  let cluster: ClusterRecord | undefined = await findCluster(backend, clusterId, work.signal);
  while (cluster !== undefined && !done.has(cluster.creationId)) {
    await destroyOne(work, backend, cluster);
    done.add(cluster.creationId);
    cluster = await backend.find(clusterId, work.signal);
  }
}

/**
 * Removes all of these clusters. After the first failure it starts no further removal, but waits
 * for those already started.
 */
export async function destroyEach(
  work: Pick<Work, "progress" | "environment" | "signal">,
  backend: Backend<unknown>,
  clusters: readonly ClusterRecord[],
): Promise<void> {
  await mapConcurrently(
    clusters,
    atOnce,
    async (cluster) => destroyOne(work, backend, cluster),
    work.signal,
  );
}

/** Throws `bad-usage` if snapshots of the cluster would be lost. */
export async function assertNoSnapshots(
  { local }: Backend<unknown>,
  cluster: ClusterRecord,
  signal: AbortSignal,
): Promise<void> {
  const names = ((await local?.snapshots.list(cluster, signal)) ?? []).map(({ name }) => name);
  if (names.length === 0) return;
  throw new ClusterError(
    "bad-usage",
    `Cluster "${cluster.id}" has snapshots, which would be lost: ${names.join(", ")}.`,
    {
      hint: `Remove the cluster with ${commandName("destroy")}, which asks, or delete its snapshots.`,
      facts: { cluster: cluster.id, snapshots: names },
    },
  );
}

async function destroyOne(
  { progress, environment, signal }: Pick<Work, "progress" | "environment" | "signal">,
  backend: Backend<unknown>,
  cluster: ClusterRecord,
): Promise<void> {
  using step = progress.start("Destroy", cluster.id);
  try {
    await removeCluster(backend, cluster, environment, signal);
  } catch (error) {
    if (signal.aborted)
      progress.warn(`Cluster "${cluster.id}" may be partly removed: run the same command again.`);
    throw error;
  }
  step.done();
}

/**
 * Removes a cluster with its key, ends connections to it, and records in its folder on this machine
 * that it is gone. Safe to repeat.
 */
export async function removeCluster(
  backend: Pick<Backend<never>, "remove">,
  cluster: ClusterName,
  environment: Environment,
  signal: AbortSignal,
): Promise<void> {
  await closeMasterConnections(cluster.directory, environment);
  await backend.remove(cluster, signal);
  await endRemovedCreation(cluster.directory);
}
