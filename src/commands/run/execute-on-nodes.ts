import type { Context, Source } from "../../cli/command.ts";
import { findNodes, warnOfGoneNodes } from "../../cluster/find-cluster.ts";
import { firstMaster } from "../../cluster/run-on-node.ts";
import { type NodeOutcome, type NodesRun, runOnNodes } from "../../cluster/run-on-nodes.ts";
import { type Wanted, isWanted, runUntil, wantedStatus } from "../../cluster/run/run-until.ts";
import { hintOf, messageOf } from "../../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import type { JsonResults, OutcomeView } from "../json-results.ts";
import { type Watched, troubleFacts } from "./with-watch.ts";

interface NodesRequest extends Omit<NodesRun, "nodes" | "onLine"> {
  readonly find: (signal: AbortSignal) => Promise<ClusterRecord>;
  /** If there is none, the first running master is the only node. */
  readonly selectors: readonly string[];
  /** Whether they name one node rather than a group. */
  readonly isAlone: boolean;
  readonly shard: Source | undefined;
  readonly wanted: Wanted;
  /** How long the command is repeated; undefined: it runs once. */
  readonly untilMs: number | undefined;
  /** Waits for what has gone wrong on the nodes meanwhile; undefined: they are not watched. */
  readonly troubles: Watched["findTroubles"] | undefined;
}

type RunOn = (
  cluster: ClusterRecord,
  nodes: readonly NodeRecord[],
  signal: AbortSignal,
) => Promise<readonly NodeOutcome[]>;

/** Resolves with the highest exit status of all nodes. */
export async function executeOnNodes(
  { find, selectors, isAlone, shard, wanted, untilMs, troubles, ...request }: NodesRequest,
  context: Context,
): Promise<number> {
  const { output, progress, signal } = context;
  const sources = new Map<string, Source | undefined>();
  const keepsPaths = isAlone && shard !== undefined;
  const print = (node: NodeRecord, stream: "stdout" | "stderr", line: string) =>
    output.line(stream, sources.get(nodeReference(node)), line);
  const sourceOf = (node: NodeRecord, index: number): Source | undefined => {
    if (!isAlone)
      return {
        name: `${shard === undefined ? "" : `${shard.name} `}${nodeReference(node)}`,
        index,
      };
    return shard ?? (untilMs === undefined ? { name: nodeReference(node), index } : undefined);
  };
  const runOn: RunOn = async (cluster, nodes, inner) => {
    for (const [index, node] of nodes.entries()) {
      const name = nodeReference(node);
      if (!sources.has(name)) sources.set(name, sourceOf(node, index));
    }
    const run = {
      ...request,
      nodes,
      keepsPaths,
      isOutputClosed: () => output.isClosed,
      ...(output.format === "text" && untilMs === undefined && { onLine: print }),
    };
    const runtime = { ...context, onConnecting: () => context.failuresExitWith(255) };
    return await runOnNodes({ ...runtime, signal: inner }, cluster, run);
  };
  const nodesOf = nodesChosenBy(selectors, context);
  const cluster = await find(signal);
  warnOfGoneNodes(cluster, selectors, context);
  const outcomes =
    untilMs === undefined
      ? await runOn(cluster, await nodesOf(cluster, signal), signal)
      : await repeat({ cluster, find, nodesOf, runOn, wanted, untilMs }, context);
  if (untilMs !== undefined && output.format === "text") await printOutputs(outcomes, print);
  const failed = outcomes.filter((outcome) => !isDone(outcome, wanted));
  if (output.format === "text") {
    for (const each of failed) progress.note(failureLine(each));
    // Nodes that fail for the same reason have the same hint.
    for (const hint of new Set(failed.flatMap(({ error }) => (error && hintOf(error)) ?? [])))
      progress.note(hint);
  }
  const noticed = (await troubles?.())?.map(troubleFacts);
  const nodes = outcomes.map((each) => outcomeView(each, context));
  const results = { nodes, ...(noticed !== undefined && { noticed }) };
  output.result({ text: "", data: results satisfies JsonResults["run"] });
  return Math.max(
    ...outcomes.map(({ status, error }) =>
      error === undefined ? wantedStatus(status, wanted) : status,
    ),
  );
}

function nodesChosenBy(selectors: readonly string[], context: Context): Repeated["nodesOf"] {
  const chosen = { names: selectors };
  return async (cluster, signal) => {
    if (selectors.length === 0) return [await firstMaster({ ...context, signal }, cluster)];
    const nodes = findNodes(cluster, chosen.names);
    // The next time, a node of a group that is gone is an error: the command has not succeeded there.
    chosen.names = nodes.map(nodeReference);
    return nodes;
  };
}

async function printOutputs(
  outcomes: readonly NodeOutcome[],
  print: NonNullable<NodesRun["onLine"]>,
): Promise<void> {
  for (const { node, ...texts } of outcomes) {
    for (const stream of ["stdout", "stderr"] as const) {
      const lines = texts[stream].split("\n");
      if (lines.at(-1) === "") lines.pop();
      for (const line of lines) await print(node, stream, line);
    }
  }
}

const isDone = ({ status, error }: NodeOutcome, wanted: Wanted): boolean =>
  error === undefined && isWanted(status, wanted);

interface Repeated extends Pick<NodesRequest, "find" | "wanted"> {
  readonly cluster: ClusterRecord;
  readonly nodesOf: (cluster: ClusterRecord, signal: AbortSignal) => Promise<readonly NodeRecord[]>;
  readonly runOn: RunOn;
  readonly untilMs: number;
}

/** Each time, the command runs only on those nodes on which it has not ended as wanted. */
async function repeat(
  { cluster, find, nodesOf, runOn, wanted, untilMs }: Repeated,
  { clock, progress, signal }: Context,
): Promise<readonly NodeOutcome[]> {
  const done = new Map<string, NodeOutcome>();
  const known = { cluster, isCurrent: true };
  const attempt = async (inner: AbortSignal) => {
    // A node that could not be reached may have been started again, at another address.
    if (!known.isCurrent) known.cluster = await find(inner);
    known.isCurrent = false;
    const nodes = await nodesOf(known.cluster, inner);
    const left = nodes.filter((node) => !done.has(nodeReference(node)));
    const ended = await runOn(known.cluster, left, inner);
    known.isCurrent = ended.every(({ error }) => error === undefined);
    for (const each of ended) if (isDone(each, wanted)) done.set(nodeReference(each.node), each);
    const outcomes = nodes.flatMap(
      (node) => done.get(nodeReference(node)) ?? ended.filter((each) => each.node === node),
    );
    return { outcomes, isDone: outcomes.every((each) => isDone(each, wanted)) };
  };
  const waitingFor = (): string => `the command to ${wanted.fails ? "fail" : "succeed"}`;
  const rule = { limitMs: untilMs, clock, shows: { progress, waitingFor } };
  return (await runUntil(attempt, rule, signal)).outcomes;
}

function failureLine({ node, status, error }: NodeOutcome): string {
  const ended = status === 0 ? "succeeded" : `exited with status ${status}`;
  return `${nodeReference(node)}: ${error === undefined ? ended : messageOf(error)}`;
}

const outcomeView = (
  { node, status, stdout, stderr, error }: NodeOutcome,
  { nameFlags }: Pick<Context, "nameFlags">,
): OutcomeView => ({
  reference: nodeReference(node),
  status,
  stdout: outside(stdout),
  stderr: outside(stderr),
  ...(error !== undefined && {
    error: {
      id: error.id,
      message: nameFlags(messageOf(error)),
      ...(error.hint !== undefined && { hint: nameFlags(hintOf(error) ?? "") }),
    },
  }),
});
