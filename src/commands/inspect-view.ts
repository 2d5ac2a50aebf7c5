import type { Context } from "../cli/command.ts";
import { clusterKey } from "../cluster/connections.ts";
import { expectedWebUrl, hasNoWebUi } from "../cluster/web-ui.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { type ClusterView, type NodeView, clusterView, durationText, nodeView, tableText } from "./cluster-view.ts";

interface Facts extends ClusterView {
  readonly sshKey: { readonly path: string; readonly isHere: boolean };
  /** Absent while no master has an address; null: the platform has none. */
  readonly webUi?: string | null;
  readonly nodes: readonly VersionedNode[];
}

/** A node's version is there only if it was asked for; null: it isn't known. */
type VersionedNode = NodeView & { readonly version?: string | null };
type Versions = ReadonlyMap<string, string> | undefined;

export async function versionsOf(cluster: ClusterRecord, context: Context): Promise<Versions> {
  const { readVersions } = await import("../cluster/upgrade/read-versions.ts");
  return readVersions(cluster, context, context.signal);
}

export async function inspectFacts(cluster: ClusterRecord, versions: Versions, nowMs: number): Promise<Facts> {
  const url = hasNoWebUi(cluster) ? null : expectedWebUrl(cluster);
  return {
    ...clusterView(cluster, nowMs),
    sshKey: await clusterKey(cluster),
    ...(url !== undefined && { webUi: url }),
    nodes: cluster.nodes.map((node) => {
      const view = nodeView(node);
      return versions === undefined ? view : { ...view, version: versions.get(view.reference) ?? null };
    }),
  };
}

export function inspectText(facts: Facts): string {
  const lines = [
    ["Cluster", facts.id],
    ["State", `${facts.state} (machines only; run \`wait\` to check the platform)`],
    ["Variant", facts.variant],
    ["Distribution", facts.distribution],
    ...(facts.region === undefined ? [] : [["Region", facts.region]]),
    ...(facts.secondsLeft === undefined
      ? []
      : [["Time left", `${durationText(facts.secondsLeft)} (ends ${facts.expiresAt})`]]),
    ...(facts.maximumCostDollars === undefined
      ? []
      : [["Cost at most", `$${facts.maximumCostDollars.toFixed(2)}, storage and addresses extra`]]),
    ["SSH key", facts.sshKey.isHere ? facts.sshKey.path : "not on this machine: the cluster was created elsewhere"],
    ["Web UI", facts.webUi === null ? "none" : (facts.webUi ?? "no master has an address yet")],
  ];
  const nodes = facts.nodes.map((node) => [
    node.reference,
    node.state,
    node.publicAddress ?? "–",
    node.privateAddress ?? "–",
    node.sshUser,
    node.id,
    ...(node.version === undefined ? [] : [node.version ?? "–"]),
  ]);
  const isVersioned = facts.nodes.some(({ version }) => version !== undefined);
  const head = ["NODE", "STATE", "PUBLIC IP", "PRIVATE IP", "SSH USER", "ID", ...(isVersioned ? ["VERSION"] : [])];
  return `${tableText(lines)}\n\n${tableText([head, ...nodes])}`;
}
