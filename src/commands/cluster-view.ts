import { table } from "../cli/layout.ts";
import { durationText } from "../system/amounts.ts";
import { nodeReference, roles, type ClusterRecord, type NodeRecord, type Role } from "../model/cluster-record.ts";

/** A cluster in the JSON output of `inspect`, `list` and `create`. Times are RFC 3339 texts; costs are US dollars. */
export interface ClusterView {
  readonly id: string;
  readonly backend: string;
  readonly region?: string;
  readonly variant: string;
  readonly distribution: string;
  readonly state: string;
  readonly createdAt?: string;
  readonly ageSeconds?: number;
  readonly expiresAt?: string;
  readonly secondsLeft?: number;
  readonly maximumCostDollars?: number;
  readonly counts: Readonly<Record<"masters" | "agents" | "publicAgents", number>>;
}

export interface NodeView {
  readonly reference: string;
  readonly id: string;
  readonly role: Role;
  readonly state: string;
  readonly publicAddress?: string;
  readonly privateAddress?: string;
  readonly sshUser: string;
  readonly sshPort: number;
}

/** Converts a cluster for `--output json`. Ended machines are not counted. */
export function clusterView(cluster: ClusterRecord, nowMs: number): ClusterView {
  const count = (role: Role): number =>
    cluster.nodes.filter((node) => node.role === role && node.state !== "ended").length;
  const [masters, agents, publicAgents] = roles.map(count) as [number, number, number];
  return {
    id: cluster.id,
    backend: cluster.backend,
    ...(cluster.region !== undefined && { region: cluster.region }),
    variant: cluster.variant,
    distribution: cluster.distribution,
    state: cluster.state,
    ...(cluster.createdAt !== undefined && {
      createdAt: cluster.createdAt.toISOString(),
      ageSeconds: Math.max(0, Math.round((nowMs - cluster.createdAt.getTime()) / 1000)),
    }),
    ...(cluster.expiresAt !== undefined && {
      expiresAt: cluster.expiresAt.toISOString(),
      secondsLeft: Math.max(0, Math.round((cluster.expiresAt.getTime() - nowMs) / 1000)),
    }),
    ...(cluster.maximumCost !== undefined && { maximumCostDollars: cluster.maximumCost }),
    counts: { masters, agents, publicAgents },
  };
}

export function nodeView(node: NodeRecord): NodeView {
  return {
    reference: nodeReference(node),
    id: node.id,
    role: node.role,
    state: node.state,
    ...(node.publicAddress !== undefined && { publicAddress: node.publicAddress }),
    ...(node.privateAddress !== undefined && { privateAddress: node.privateAddress }),
    sshUser: node.ssh.user,
    sshPort: node.ssh.port,
  };
}

interface Listing {
  readonly isOfAllPlaces: boolean;
  readonly endsByItself: boolean;
  readonly columns: number;
}

/** One row for each cluster. */
export function listText(views: readonly ClusterView[], { isOfAllPlaces, endsByItself, columns }: Listing): string {
  if (views.length === 0) return "";
  const head = ["ID", "STATE", "VARIANT", "MASTERS", "AGENTS", "PUBLIC AGENTS"];
  const hasEnds = views.some(({ secondsLeft }) => secondsLeft !== undefined);
  const timeHead = endsByItself ? ["TIME LEFT", "COST AT MOST"] : ["AGE", ...(hasEnds ? ["TIME LEFT"] : [])];
  const regionOf = (view: ClusterView): readonly string[] => (isOfAllPlaces ? [view.region ?? "–"] : []);
  const rows = [
    [...(isOfAllPlaces ? ["REGION"] : []), ...head, ...timeHead],
    ...views.map((view) => [...regionOf(view), ...row(view), ...timeCells(view, timeHead)]),
  ];
  return table(rows, columns);
}

function row(view: ClusterView): string[] {
  return [
    view.id,
    view.state,
    view.variant,
    String(view.counts.masters),
    String(view.counts.agents),
    String(view.counts.publicAgents),
  ];
}

function timeCells(view: ClusterView, head: readonly string[]): readonly string[] {
  const cells: Readonly<Record<string, string | undefined>> = {
    AGE: view.ageSeconds === undefined ? undefined : durationText(view.ageSeconds),
    "TIME LEFT": view.secondsLeft === undefined ? undefined : durationText(view.secondsLeft),
    "COST AT MOST": view.maximumCostDollars === undefined ? undefined : `$${view.maximumCostDollars.toFixed(2)}`,
  };
  return head.map((title) => cells[title] ?? "–");
}
