import type { Backend } from "../backend/backend.ts";
import { ClusterError } from "../errors.ts";
import type { ClusterRecord } from "./record.ts";

/** The cluster with this id. Throws `cluster-not-found`, which names the other places that have one. */
export async function findCluster(
  backend: Pick<Backend<never>, "find" | "findElsewhere" | "place">,
  clusterId: string,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const cluster = await backend.find(clusterId, signal);
  if (cluster !== undefined) return cluster;
  const elsewhere = await backend.findElsewhere(clusterId, signal);
  const here = backend.place === undefined ? "" : ` in ${backend.place.kind} ${backend.place.name}`;
  throw new ClusterError("cluster-not-found", `There is no cluster "${clusterId}"${here}.`, {
    hint: hintFor(backend, elsewhere),
    facts: { cluster: clusterId, ...(backend.place && { [backend.place.kind]: backend.place.name }), elsewhere },
  });
}

function hintFor(backend: Pick<Backend<never>, "place">, elsewhere: readonly string[]): string {
  if (backend.place === undefined || elsewhere.length === 0)
    return "The list command shows the clusters that there are.";
  const options = elsewhere.map((name) => `${backend.place?.option} ${name}`);
  return `There is one in ${elsewhere.join(", ")}: add ${options.join(" or ")}.`;
}
