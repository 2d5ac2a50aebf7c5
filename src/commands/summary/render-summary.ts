import { type ClusterRecord, countNodes } from "../../model/cluster-record.ts";
import { platformNameOf } from "../../model/parse-values.ts";
import { plainLine } from "../../system/printable.ts";
import { endText, nodesText } from "../../system/amounts.ts";

export type Row = readonly [label: string, value: string];

interface Summary {
  readonly title: string;
  readonly cluster: ClusterRecord;
  readonly more: readonly Row[];
}

/** Returns the Markdown for a cluster. Values from tags and nodes are escaped: they can't contain Markdown or HTML. */
export function renderCluster({ title, cluster, more }: Summary, nowMs: number): string {
  const { expiresAt, maximumCost } = cluster;
  const platform = platformNameOf(cluster.platform ?? "");
  const rows: readonly (Row | false)[] = [
    [
      "Place",
      cluster.region === undefined ? cluster.backend : `${cluster.backend}, ${cluster.region}`,
    ],
    cluster.variant === "none"
      ? ["Distribution", cluster.distribution]
      : ["Variant", `${cluster.variant}, ${cluster.distribution}`],
    platform !== undefined && ["Platform", `${platform.name} ${platform.version}`],
    ["Nodes", nodesText(countNodes(cluster.nodes))],
    expiresAt !== undefined && ["Ends", endText(expiresAt, nowMs)],
    maximumCost !== undefined && ["Cost", `at most $${maximumCost.toFixed(2)}`],
    ...more,
  ];
  const cells = rows
    .filter((row) => row !== false)
    .map(([label, value]) => `| ${label} | ${code(value)} |`);
  return [
    `### ${title}`,
    "",
    `| Cluster | ${code(cluster.id)} |`,
    "| --- | --- |",
    ...cells,
    "",
  ].join("\n");
}

export function renderFailure(title: string, text: string, logs: string | undefined): string {
  const lines = text.split(/\r\n|\r|\n/).map((line) => `    ${line}`);
  return [
    `### ${title}`,
    "",
    ...lines,
    "",
    ...(logs === undefined ? [] : [`Logs: ${code(logs)}`, ""]),
  ].join("\n");
}

/** Renders a code span in a table, where only the backtick and the vertical bar have a meaning. */
const code = (value: string): string =>
  `\`${plainLine(value).replaceAll("`", "'").replaceAll("|", "\\|")}\``;
