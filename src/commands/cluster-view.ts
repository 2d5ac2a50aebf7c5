import { plainLine } from "../system/printable.ts";
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

/** `1 agent`, `2 agents`. */
export const numbered = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** `1 h 58 min`, `12 min`, `40 s`. */
export function durationText(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Columns are as wide as their widest cell, with two spaces between them and no trailing spaces. A cell can't start a new line. */
export function tableText(cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map((cell) => plainLine(cell)));
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, cell.length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
