import type { Backend, BackendPlace, OtherPlaces } from "../backend/contract.ts";
import { ClusterError } from "../errors.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { assertOwnFolder } from "../store/creation-folder.ts";

/**
 * Finds the cluster with this id. Throws `cluster-not-found`, which names the other places that have one or could not be queried, and
 * `machine-not-set-up` if the cluster's folder on this machine is a link to another place.
 */
export async function findCluster(
  backend: Pick<Backend<never>, "find" | "place">,
  clusterId: string,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const cluster = await backend.find(clusterId, signal);
  if (cluster !== undefined) {
    await assertOwnFolder(cluster.directory);
    return cluster;
  }
  const { place } = backend;
  const others = (await place?.findElsewhere(clusterId, signal)) ?? { places: [], unreachable: [] };
  const here = place === undefined ? "" : ` in ${place.kind} ${place.name}`;
  throw new ClusterError("cluster-not-found", `There is no cluster "${clusterId}"${here}.`, {
    hint: hintFor(place, others),
    facts: {
      cluster: clusterId,
      ...(place && { [place.kind]: place.name }),
      elsewhere: others.places,
      ...(others.unreachable.length > 0 && { silent: others.unreachable }),
    },
  });
}

function hintFor(place: BackendPlace | undefined, { places, unreachable }: OtherPlaces): string {
  if (place !== undefined && places.length > 0) {
    const options = places.map((name) => `\`${place.option} ${name}\``);
    return `There is one in ${places.join(", ")}: add ${options.join(" or ")}.`;
  }
  const unasked = unreachable.map(
    (each) => `It may be in ${each.place}, whose clusters cannot be listed: ${each.reason}`,
  );
  return [...unasked, "Run the list command to see all clusters."].join(" ");
}
