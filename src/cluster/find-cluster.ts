import type { Backend, Elsewhere } from "../model/backend.ts";
import { ClusterError } from "../errors.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { assertOwnFolder } from "../system/files/creation-folder.ts";

/**
 * Finds the cluster with this id. Throws `cluster-not-found`, which names the other places that have one or could not be queried, and
 * `machine-not-set-up` if the cluster's folder on this machine is a link to another place.
 */
export async function findCluster(
  backend: Pick<Backend<never>, "find" | "findElsewhere" | "place">,
  clusterId: string,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const cluster = await backend.find(clusterId, signal);
  if (cluster !== undefined) {
    await assertOwnFolder(cluster.directory);
    return cluster;
  }
  const elsewhere = await backend.findElsewhere(clusterId, signal);
  const here = backend.place === undefined ? "" : ` in ${backend.place.kind} ${backend.place.name}`;
  throw new ClusterError("cluster-not-found", `There is no cluster "${clusterId}"${here}.`, {
    hint: hintFor(backend, elsewhere),
    facts: {
      cluster: clusterId,
      ...(backend.place && { [backend.place.kind]: backend.place.name }),
      elsewhere: elsewhere.places,
      ...(elsewhere.silent.length > 0 && { silent: elsewhere.silent }),
    },
  });
}

function hintFor({ place }: Pick<Backend<never>, "place">, { places, silent }: Elsewhere): string {
  if (place !== undefined && places.length > 0) {
    const options = places.map((name) => `\`${place.option} ${name}\``);
    return `There is one in ${places.join(", ")}: add ${options.join(" or ")}.`;
  }
  const unasked = silent.map((each) => `It may be in ${each.place}, whose clusters cannot be listed: ${each.reason}`);
  return [...unasked, "Run the list command to see all clusters."].join(" ");
}
