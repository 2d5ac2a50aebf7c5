import type { Backend } from "../model/backend.ts";
import type { Surroundings } from "../system/surroundings.ts";
import { runAtOnce } from "../system/run-at-once.ts";
import { findCluster } from "./find-cluster.ts";
import { removeCluster } from "./remove-cluster.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";

const atOnce = 4;

/**
 * Removes the cluster with this id, and what another creation of the same id may have left. Throws `cluster-not-found`, and the backend's own errors
 * if something is left.
 */
export async function destroyCluster(
  backend: Backend<unknown>,
  clusterId: string,
  surroundings: Pick<Surroundings, "progress">,
  signal: AbortSignal,
): Promise<void> {
  const done = new Set<string>();
  let cluster: ClusterRecord | undefined = await findCluster(backend, clusterId, signal);
  while (cluster !== undefined && !done.has(cluster.creationId)) {
    await destroyOne(backend, cluster, surroundings, signal);
    done.add(cluster.creationId);
    cluster = await backend.find(clusterId, signal);
  }
}

/** Removes all of these clusters. After the first failure it starts no further removal, but waits for those already started. */
export async function destroyEach(
  backend: Backend<unknown>,
  clusters: readonly ClusterRecord[],
  surroundings: Pick<Surroundings, "progress">,
  signal: AbortSignal,
): Promise<void> {
  await runAtOnce(clusters, atOnce, async (cluster) => destroyOne(backend, cluster, surroundings, signal), signal);
}

async function destroyOne(
  backend: Backend<unknown>,
  cluster: ClusterRecord,
  { progress }: Pick<Surroundings, "progress">,
  signal: AbortSignal,
): Promise<void> {
  using step = progress.start("Destroy", cluster.id);
  try {
    await removeCluster(backend, cluster, signal);
  } catch (error) {
    if (signal.aborted) progress.warn(`Cluster "${cluster.id}" may be partly removed: give the same command again.`);
    throw error;
  }
  step.done();
}
