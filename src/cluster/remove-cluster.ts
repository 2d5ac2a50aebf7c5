import type { Backend, ClusterName } from "../model/backend.ts";
import { endCreation } from "../system/files/creation-folder.ts";

/** Removes a cluster and records in its folder on this machine that it is gone. Safe to repeat. */
export async function removeCluster(
  backend: Pick<Backend<never>, "remove">,
  cluster: ClusterName,
  signal: AbortSignal,
): Promise<void> {
  await backend.remove(cluster, signal);
  await endCreation(cluster.directory, "removed");
}
