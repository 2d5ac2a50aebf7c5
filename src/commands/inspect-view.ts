import { pairs, table, wrap } from "../cli/layout.ts";
import { endText, momentText } from "../system/amounts.ts";
import type { Context } from "../cli/command.ts";
import { clusterKey } from "../cluster/connections.ts";
import { expectedWebUrl, hasNoWebUi } from "../cluster/web-ui.ts";
import { type ClusterRecord, nodeReference, roles } from "../model/cluster-record.ts";
import { outside } from "../outside-text.ts";
import { type FaultNote, findFaultNotes } from "../store/fault-notes.ts";
import { outsideLine, withoutFullStop } from "../system/printable.ts";
import { type ClusterView, type NodeView, clusterView, nodeView } from "./cluster-view.ts";

export interface InspectedCluster extends ClusterView {
  readonly sshKey: { readonly path: string; readonly isHere: boolean };
  /** Undefined while no master has an address; null: the platform has none. */
  readonly webUi: string | null | undefined;
  readonly nodes: readonly VersionedNode[];
  /** A sentence for each node that has ended or is missing. */
  readonly problems: readonly string[];
  /** The faults that were begun on this computer. */
  readonly faults: readonly FaultNote[];
}

/** A node's version is undefined without `--versions`, and null if it isn't known. */
type VersionedNode = NodeView & { readonly version: string | null | undefined };
type Versions = ReadonlyMap<string, string> | undefined;

export async function versionsOf(cluster: ClusterRecord, context: Context): Promise<Versions> {
  const { readVersions } = await import("../cluster/upgrade/read-versions.ts");
  return readVersions(context, cluster);
}

export async function inspectFacts(
  cluster: ClusterRecord,
  versions: Versions,
  nowMs: number,
): Promise<InspectedCluster> {
  return {
    ...clusterView(cluster, nowMs),
    sshKey: await clusterKey(cluster),
    webUi: hasNoWebUi(cluster) ? null : expectedWebUrl(cluster),
    faults: await findFaultNotes(cluster.directory, nowMs),
    nodes: cluster.nodes.map((node) => {
      const view = nodeView(node);
      const version = versions?.get(view.reference);
      return { ...view, version: version === undefined ? versions && null : outside(version) };
    }),
    problems: problemsOf(cluster),
  };
}

export const factsJson = (facts: InspectedCluster): string =>
  `${JSON.stringify({ schemaVersion: 1, cluster: facts }, undefined, 2)}\n`;

function problemsOf({ nodes, requested }: ClusterRecord): readonly string[] {
  const here = new Set(nodes.map(nodeReference));
  const wanted = roles.flatMap((role) =>
    Array.from({ length: requested?.[role] ?? 0 }, (_, index) => nodeReference({ role, index })),
  );
  const stopped = nodes.filter(({ state }) => state === "ended");
  return [
    ...stopped.map((node) => {
      const reason = outsideLine(node.stateReason);
      return `${nodeReference(node)} has stopped${reason === "" ? "" : `: ${withoutFullStop(reason)}`}.`;
    }),
    ...wanted
      .filter((name) => !here.has(name))
      .map((name) => `${name} is missing: its machine no longer exists.`),
  ];
}

/** What leads to the nodes; undefined: their addresses do. */
const throughOf = ({ nodes }: Pick<InspectedCluster, "nodes">): string | undefined =>
  nodes.find(({ state, sshThrough }) => state === "running" && sshThrough !== undefined)
    ?.sshThrough;

function webText(facts: Pick<InspectedCluster, "webUi" | "nodes">): string {
  if (facts.webUi === null) return "none";
  const absent =
    throughOf(facts) === undefined ? "no master has an address yet" : "run `web` to open it";
  return facts.webUi ?? absent;
}

/** Where the addresses of nodes lead nowhere from here, only `forward` leads to the platform's ports. */
function portLines(
  { platform, nodes }: InspectedCluster,
  through: string | undefined,
): readonly (readonly [string, string])[] {
  const { ports = [] } = platform ?? {};
  if (ports.length === 0) return [];
  const isForwarded = through !== undefined || nodes.every(({ sshPort }) => sshPort !== 22);
  return [["Ports", `${ports.join(", ")}${isForwarded ? ": run `forward` to reach one" : ""}`]];
}

function platformLines({
  platform,
  variant,
}: InspectedCluster): readonly (readonly [string, string])[] {
  if (platform === undefined) return variant === "none" ? [] : [["Variant", variant]];
  return [["Platform", `${platform.name} ${platform.version} (when the cluster was created)`]];
}

export function inspectText(facts: InspectedCluster, columns: number, nowMs: number): string {
  const through = throughOf(facts);
  const lines: (readonly [string, string])[] = [
    ["Cluster", facts.id],
    ["State", `${facts.state} (machines only; run \`wait\` to check the platform)`],
    ...platformLines(facts),
    ["Distribution", facts.distribution],
    ...(facts.region === undefined ? [] : [["Region", facts.region] as const]),
    ...(facts.expiresAt === undefined ? [] : [["Ends", endText(facts.expiresAt, nowMs)] as const]),
    ...(facts.maximumCostDollars === undefined
      ? []
      : [
          [
            "Cost at most",
            `$${facts.maximumCostDollars.toFixed(2)}, storage and addresses extra`,
          ] as const,
        ]),
    [
      "SSH key",
      facts.sshKey.isHere
        ? facts.sshKey.path
        : "not on this computer: the cluster was created elsewhere",
    ],
    ["Web UI", webText(facts)],
    ...portLines(facts, through),
    ...(through === undefined
      ? []
      : [["Reached", `through ${through}: nodes' addresses lead nowhere from here`] as const]),
    ...facts.faults.map(
      ({ description, endsAt }) =>
        ["Fault", `${description}, until ${momentText(endsAt, nowMs)}`] as const,
    ),
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
  const head = [
    "NODE",
    "STATE",
    "PUBLIC IP",
    "PRIVATE IP",
    "SSH USER",
    "ID",
    ...(isVersioned ? ["VERSION"] : []),
  ];
  const problems =
    facts.problems.length === 0 ? [] : [wrap(facts.problems.join("\n"), columns, 2).join("\n")];
  return [pairs(lines, columns), table([head, ...nodes], columns), ...problems].join("\n\n");
}
