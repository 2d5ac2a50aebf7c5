import type { ClusterState, Counts, NodeRecord } from "./cluster-record.ts";
import { roles } from "./cluster-record.ts";

export function nodeCount(counts: Counts): number {
  return roles.reduce((sum, role) => sum + counts[role], 0);
}

/** The requested number of nodes per role, as one tag or label stores it: `master=1 agent=2 public_agent=1`. */
export function countsText(counts: Counts): string {
  return roles.map((role) => `${role}=${counts[role]}`).join(" ");
}

/** The state of a cluster with these nodes, given the requested counts. `undefined`: the counts are unknown. */
export function clusterState(nodes: readonly NodeRecord[], asked: Counts | undefined): ClusterState {
  const live = nodes.filter((node) => node.state === "starting" || node.state === "running");
  if (live.length === 0) return "ending";
  if (live.some((node) => node.state === "starting")) return "starting";
  const isComplete = roles.every((role) => live.filter((node) => node.role === role).length >= (asked?.[role] ?? 0));
  return isComplete ? "running" : "incomplete";
}

/** The order of a record's nodes. */
export function byRoleAndIndex(a: NodeRecord, b: NodeRecord): number {
  return roles.indexOf(a.role) - roles.indexOf(b.role) || a.index - b.index;
}
