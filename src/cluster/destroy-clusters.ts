import type { Backend, Surroundings } from "../backend/backend.ts";
import { runAtOnce } from "../system/concurrency.ts";
import { findCluster } from "./find-cluster.ts";
import type { ClusterRecord } from "./record.ts";

const atOnce = 4;

/**
 * Removes the cluster with this id, and what another creation of the same id may have left. Throws `cluster-not-found`, and the backend's own
 * errors where something is left.
 */
export async function destroyCluster(
  backend: Backend<unknown>,
  clusterId: string,
  { progress }: Pick<Surroundings, "progress">,
  signal: AbortSignal,
): Promise<void> {
  const done = new Set<string>();
  let cluster: ClusterRecord | undefined = await findCluster(backend, clusterId, signal);
  while (cluster !== undefined && !done.has(cluster.creationId)) {
    using step = progress.start("Destroy", clusterId);
    await backend.destroy(cluster, signal);
    step.done();
    done.add(cluster.creationId);
    cluster = await backend.find(clusterId, signal);
  }
}

/** Removes all of these. After the first failure no further removal is begun; those under way are awaited. */
export async function destroyEach(
  backend: Backend<unknown>,
  clusters: readonly ClusterRecord[],
  { progress }: Pick<Surroundings, "progress">,
  signal: AbortSignal,
): Promise<void> {
  await runAtOnce(
    clusters,
    atOnce,
    async (cluster) => {
      using step = progress.start("Destroy", cluster.id);
      await backend.destroy(cluster, signal);
      step.done();
    },
    signal,
  );
}
