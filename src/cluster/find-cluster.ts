import { isIPv4 } from "node:net";
import type { Backend, BackendPlace, OtherPlaces } from "../backend/contract.ts";
import { ClusterError } from "../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference, roles } from "../model/cluster-record.ts";
import { outside } from "../outside-text.ts";
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

const byRole = new RegExp(`^(?:${roles.join("|")})_(?:0|[1-9][0-9]{0,3})$`);

/**
 * Returns what is wrong with the text of a node reference, or `undefined`. It doesn't check whether such a node exists. `machineId` is the format of
 * the backend's own machine ids.
 */
export function nodeReferenceProblem(text: string, machineId: RegExp): string | undefined {
  if (byRole.test(text) || isIPv4(text) || machineId.test(text)) return undefined;
  return `"${text}" is not a node: use an IPv4 address, a machine id, or a name such as master_0, agent_0 or public_agent_0`;
}

/**
 * Finds a node by public address, private address, machine id or `<role>_<number>`. Throws `node-not-found`, also if the node has no address at which
 * it could be reached: `ssh` would take its name for a host's.
 */
export function findNode(cluster: ClusterRecord, reference: string): NodeRecord {
  const node = cluster.nodes.find((candidate) => namesOf(candidate).includes(reference));
  if (node !== undefined && node.state !== "ended" && node.ssh.host !== "") return node;
  if (node !== undefined && node.state !== "ended") {
    throw new ClusterError("node-not-found", `Node "${reference}" of cluster "${cluster.id}" has no address.`, {
      hint: "The node is still starting, or has lost its network. Run the inspect command to see the nodes' addresses.",
      facts: { cluster: cluster.id, node: reference },
    });
  }
  const existing = cluster.nodes.filter((candidate) => candidate.state !== "ended").map(nodeReference);
  const why = node?.stateReason === undefined ? "" : ` (it has terminated: ${outside(node.stateReason)})`;
  throw new ClusterError("node-not-found", `Cluster "${cluster.id}" has no node "${reference}"${why}.`, {
    hint: existing.length === 0 ? "The cluster has no nodes." : `The cluster's nodes are ${existing.join(", ")}.`,
    facts: { cluster: cluster.id, node: reference, nodes: existing },
  });
}

function namesOf(node: NodeRecord): readonly (string | undefined)[] {
  return [nodeReference(node), node.id, node.publicAddress, node.privateAddress];
}
