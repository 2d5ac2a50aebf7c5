import { plainLine } from "../../system/printable.ts";
import { endText, nodesText } from "../../system/amounts.ts";
import type { ClusterView } from "../cluster-view.ts";

/** A label and its value. */
type Row = readonly [label: string, value: string];

/** Returns the Markdown for a cluster. Values can't contain Markdown or HTML, whatever the cloud's tags or a node say. */
export function renderCluster(title: string, cluster: ClusterView, more: readonly Row[]): string {
  const { masters, agents, publicAgents } = cluster.counts;
  const rows: readonly Row[] = [
    ["Place", cluster.region === undefined ? cluster.backend : `${cluster.backend}, ${cluster.region}`],
    cluster.variant === "none"
      ? ["Distribution", cluster.distribution]
      : ["Variant", `${cluster.variant}, ${cluster.distribution}`],
    ["Nodes", nodesText({ master: masters, agent: agents, public_agent: publicAgents })],
    ...endRows(cluster),
    ...more,
  ];
  const cells = rows.map(([label, value]) => `| ${label} | ${code(value)} |`);
  return [`### ${title}`, "", `| Cluster | ${code(cluster.id)} |`, "| --- | --- |", ...cells, ""].join("\n");
}

/** Returns the Markdown for a failure, with the folder of its logs if there is one. The text, which may quote a node, stays inside a code block. */
export function renderFailure(title: string, text: string, logs: string | undefined): string {
  const lines = text.split(/\r\n|\r|\n/).map((line) => `    ${line}`);
  return [`### ${title}`, "", ...lines, "", ...(logs === undefined ? [] : [`Logs: ${code(logs)}`, ""])].join("\n");
}

function endRows({ secondsLeft, expiresAt, maximumCostDollars }: ClusterView): readonly Row[] {
  return [
    ...(secondsLeft === undefined || expiresAt === undefined
      ? []
      : [["Ends", endText(expiresAt, Date.parse(expiresAt) - secondsLeft * 1000)] as const]),
    ...(maximumCostDollars === undefined ? [] : [["Cost", `at most $${maximumCostDollars.toFixed(2)}`] as const]),
  ];
}

/** In a code span, only the backtick has a meaning, and in a table also the vertical bar. */
const code = (value: string): string => `\`${plainLine(value).replaceAll("`", "'").replaceAll("|", "\\|")}\``;
