import { plainLine } from "../../system/printable.ts";
import { type ClusterView, durationText, numbered } from "../cluster-view.ts";

/** A label and its value. */
type Row = readonly [label: string, value: string];

/** Returns the Markdown for a cluster. Values can't contain Markdown or HTML, whatever the cloud's tags or a node say. */
export function renderCluster(title: string, cluster: ClusterView, more: readonly Row[]): string {
  const { masters, agents, publicAgents } = cluster.counts;
  const rows: readonly Row[] = [
    ["Place", cluster.region === undefined ? cluster.backend : `${cluster.backend}, ${cluster.region}`],
    ["Variant", `${cluster.variant}, ${cluster.distribution}`],
    [
      "Nodes",
      [numbered(masters, "master"), numbered(agents, "agent"), numbered(publicAgents, "public agent")].join(", "),
    ],
    ...endRows(cluster),
    ...more,
  ];
  const cells = rows.map(([label, value]) => `| ${label} | ${code(value)} |`);
  return [`### ${title}`, "", `| Cluster | ${code(cluster.id)} |`, "| --- | --- |", ...cells, ""].join("\n");
}

/** Returns the Markdown for a failure. The text, which may quote a node, stays inside a code block. */
export function renderFailure(title: string, text: string): string {
  const lines = text.split(/\r\n|\r|\n/).map((line) => `    ${line}`);
  return [`### ${title}`, "", ...lines, ""].join("\n");
}

function endRows({ secondsLeft, expiresAt, maximumCostDollars }: ClusterView): readonly Row[] {
  return [
    ...(secondsLeft === undefined || expiresAt === undefined
      ? []
      : [["Ends", `${expiresAt}, in ${durationText(secondsLeft)}`] as const]),
    ...(maximumCostDollars === undefined ? [] : [["Cost", `at most $${maximumCostDollars.toFixed(2)}`] as const]),
  ];
}

/** In a code span, only the backtick has a meaning, and in a table also the vertical bar. */
const code = (value: string): string => `\`${plainLine(value).replaceAll("`", "'").replaceAll("|", "\\|")}\``;
