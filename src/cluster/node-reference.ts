import { isIPv4 } from "node:net";
import { ClusterError } from "../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference, roles } from "../model/cluster-record.ts";
import { outside } from "../outside-text.ts";

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
