import { ClusterError } from "../../errors.ts";
import { type NodeRecord, nodeReference } from "../../model/cluster-record.ts";

export function privateAddressOf(node: NodeRecord): string {
  if (node.privateAddress !== undefined) return node.privateAddress;
  throw new ClusterError("machine-failed", `${nodeReference(node)} has no private address.`);
}

const mostListed = 5;

export function listedNodes(nodes: readonly NodeRecord[]): string {
  const names = nodes.slice(0, mostListed).map(nodeReference).join(", ");
  return nodes.length > mostListed ? `${names} and ${nodes.length - mostListed} more` : names;
}
