import { type Context, defineCommand } from "../cli/command.ts";
import { BadValue, type ValuesOf, flag, option } from "../cli/options/option.ts";
import { directoryPath, value } from "../cli/options/value-types.ts";
import type { BackendKind } from "../backend/contract.ts";
import { readDurationMs } from "../system/amounts.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import type { JsonResults } from "./json-results.ts";
import { clusterOptions, laterFile, nodeNames, nodeSelector } from "./options.ts";

/** A moment, or how long before now it is. */
type Since = { readonly agoMs: number } | { readonly atMs: number };

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)$/;

const moment = value((given): Since => {
  const agoMs = readDurationMs(given);
  if (agoMs !== undefined) return { agoMs };
  const atMs = iso.test(given) ? Date.parse(given) : Number.NaN;
  if (!Number.isNaN(atMs)) return { atMs };
  throw new BadValue(
    `${JSON.stringify(given)} is neither a duration such as 15m nor a time such as 2026-11-29T09:57:00Z`,
  );
});

const optionsOf = (kind: BackendKind) =>
  clusterOptions(kind, {
    outputDir: option(directoryPath, {
      flag: "--output-dir",
      summary: "Folder for the logs; created if it does not exist",
      defaultText: "a new folder in the cluster's state folder",
    }),
    merged: option(value(laterFile, "file"), {
      flag: "--merged",
      placeholder: "<file>",
      summary:
        "Write all logs into this one file instead, ordered by time, each line with its node",
    }),
    follow: flag({
      flag: "--follow",
      short: "-f",
      summary: "Print the nodes' journals as they are written, until Ctrl-C",
    }),
    nodes: option(nodeSelector(kind.machineId), {
      flag: "--node",
      short: "-n",
      placeholder: "<node>",
      repeatable: true,
      summary: "With --follow: only these nodes, or all, masters, agents, public_agents",
      defaultText: "all",
      completeWith: nodeNames,
    }),
    since: option(moment, {
      flag: "--since",
      placeholder: "<duration|time>",
      summary: "Only the journals' lines since then: 15m, or 2026-11-29T09:57:00Z",
    }),
  });

type Input = ValuesOf<ReturnType<typeof optionsOf>>;

export const logsCommand = (kind: BackendKind) =>
  defineCommand({
    name: "logs",
    summary: "Collect or follow the logs of all nodes",
    description: `Save the installer, platform and first-boot logs of every node that answers, its journal of all boots, its kernel messages, a list of its core dumps, and the console output of every machine. Each log is a separate file; \`NODE.clock.txt\` has the difference between the node's clock and this computer's. Print the folder that contains the files. The command works at any time, even while the installation runs or after it has failed.

With \`--merged FILE\`, write all logs into one file, ordered by time. Where a node's clock differs from this computer's, its times are corrected by the difference, which stands at the beginning of the file.

With \`--follow\`, print what the nodes write into their journals, until Ctrl-C. A node that restarts goes on where it was.`,
    options: optionsOf(kind),
    examples: [
      { words: "logs --output-dir ./logs", summary: "Collect the logs for a bug report" },
      { words: "logs --merged all.log --since 15m", summary: "Compare what the nodes did last" },
      { words: "logs --follow --node masters", summary: "Watch the masters' journals" },
    ],
    check: (given, problems) => {
      const ways = [given.follow === true && "--follow", given.merged && "--merged"];
      const chosen = [...ways, given.outputDir && "--output-dir"].filter(Boolean);
      if (chosen.length > 1) problems.add(`${chosen.join(" and ")}: choose one`);
      if ((given.nodes?.length ?? 0) > 0 && given.follow !== true)
        problems.add("--node: logs of single nodes are printed with --follow only");
      if (given.follow === true && given.output === "json")
        problems.add("--follow: lines have no JSON form");
    },
    run: async (input, context) => runLogs(kind, input, context),
  });

async function runLogs(kind: BackendKind, input: Input, context: Context): Promise<void> {
  const { clock, signal, output } = context;
  const { findCluster } = await import("../cluster/find-cluster.ts");
  const backend = await kind.open(context, input);
  const cluster = await findCluster(backend, input.clusterId, signal);
  const agoMs = input.since && agoOf(input.since, clock.now());
  if (input.follow) return await follow(cluster, { ...input, agoMs }, context);
  if (input.merged !== undefined) {
    const { saveMergedLogs } = await import("../cluster/logs/save-merged-logs.ts");
    const request = { cluster, file: input.merged, agoMs };
    const { file, lines } = await saveMergedLogs(context, backend, request);
    output.result({ text: file, data: { file, lines } satisfies JsonResults["logs"] });
    return;
  }
  const { saveLogs } = await import("../cluster/logs/save-logs.ts");
  const { folder, files } = await saveLogs(context, backend, {
    cluster,
    folder: input.outputDir,
    agoMs,
  });
  output.result({ text: folder, data: { folder, files } satisfies JsonResults["logs"] });
}

const agoOf = (since: Since, nowMs: number): number =>
  "agoMs" in since ? since.agoMs : Math.max(0, nowMs - since.atMs);

async function follow(
  cluster: ClusterRecord,
  { nodes, agoMs }: Pick<Input, "nodes"> & { readonly agoMs: number | undefined },
  context: Context,
): Promise<void> {
  const { followLogs } = await import("../cluster/logs/follow-logs.ts");
  const { nodeReference } = await import("../model/cluster-record.ts");
  const { output } = context;
  const indexes = new Map(cluster.nodes.map((node, index) => [node.id, index]));
  const { untilAborted } = await import("../system/time-limit.ts");
  const following = followLogs(context, {
    cluster,
    nodes: nodes.length === 0 ? ["all"] : nodes,
    agoMs,
    onLine: ({ id, ...node }, line) =>
      output.line("stdout", { name: nodeReference(node), index: indexes.get(id) ?? 0 }, line),
    isOutputClosed: () => output.isClosed,
  });
  await untilAborted(following, context.signal);
}
