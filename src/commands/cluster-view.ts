import { table } from "../cli/layout.ts";
import { durationText } from "../system/amounts.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  countNodes,
  nodeReference,
} from "../model/cluster-record.ts";
import { platformNameOf } from "../model/parse-values.ts";

export type ClusterView = ReturnType<typeof clusterView>;

/**
 * A cluster in the JSON output of `inspect`, `list` and `create`. Costs are US dollars. Ended
 * machines are not counted.
 */
export function clusterView(cluster: ClusterRecord, nowMs: number) {
  const { id, backend, region, variant, distribution, state, createdAt, expiresAt, maximumCost } =
    cluster;
  const { master, agent, public_agent: publicAgent } = countNodes(cluster.nodes);
  return {
    id,
    backend,
    region,
    variant,
    platform: platformNameOf(cluster.platform ?? ""),
    distribution,
    state,
    createdAt,
    /** Since the creation. */
    ageSeconds: createdAt && Math.max(0, Math.round((nowMs - createdAt.getTime()) / 1000)),
    expiresAt,
    /** Until `expiresAt`, when the nodes end by themselves. */
    secondsLeft: expiresAt && Math.max(0, Math.round((expiresAt.getTime() - nowMs) / 1000)),
    /** US dollars, until `expiresAt`. */
    maximumCostDollars: maximumCost,
    /** Without nodes that have ended. */
    counts: { masters: master, agents: agent, publicAgents: publicAgent },
  };
}

export type NodeView = ReturnType<typeof nodeView>;

export const nodeView = (node: NodeRecord) => ({
  reference: nodeReference(node),
  id: node.id,
  role: node.role,
  state: node.state,
  hostname: node.hostname,
  containerName: node.containerName,
  publicAddress: node.publicAddress,
  privateAddress: node.privateAddress,
  sshUser: node.ssh.user,
  sshPort: node.ssh.port,
  sshThrough: node.ssh.through?.title,
});

interface Listing {
  readonly isOfAllScopes: boolean;
  readonly endsByItself: boolean;
  readonly columns: number;
}

export function listText(
  views: readonly ClusterView[],
  { isOfAllScopes, endsByItself, columns }: Listing,
): string {
  if (views.length === 0) return "";
  const isOfVariants = views.every(({ variant }) => variant !== "none");
  const what = isOfVariants ? "VARIANT" : "PLATFORM";
  const head = ["ID", "STATE", what, "MASTERS", "AGENTS", "PUBLIC AGENTS"];
  const hasEnds = views.some(({ secondsLeft }) => secondsLeft !== undefined);
  const timeHead = endsByItself
    ? ["TIME LEFT", "COST AT MOST"]
    : ["AGE", ...(hasEnds ? ["TIME LEFT"] : [])];
  const regionOf = (view: ClusterView): readonly string[] =>
    isOfAllScopes ? [view.region ?? "–"] : [];
  const rows = [
    [...(isOfAllScopes ? ["REGION"] : []), ...head, ...timeHead],
    ...views.map((view) => [...regionOf(view), ...row(view), ...timeCells(view, timeHead)]),
  ];
  return table(rows, columns);
}

function row(view: ClusterView): string[] {
  return [
    view.id,
    view.state,
    platformCell(view),
    String(view.counts.masters),
    String(view.counts.agents),
    String(view.counts.publicAgents),
  ];
}

function platformCell({ platform, variant }: ClusterView): string {
  if (platform !== undefined) return `${platform.name} ${platform.version}`;
  return variant === "none" ? "–" : variant;
}

function timeCells(view: ClusterView, head: readonly string[]): readonly string[] {
  const cells: Readonly<Record<string, string | undefined>> = {
    AGE: view.ageSeconds === undefined ? undefined : durationText(view.ageSeconds),
    "TIME LEFT": view.secondsLeft === undefined ? undefined : durationText(view.secondsLeft),
    "COST AT MOST":
      view.maximumCostDollars === undefined ? undefined : `$${view.maximumCostDollars.toFixed(2)}`,
  };
  return head.map((title) => cells[title] ?? "–");
}
