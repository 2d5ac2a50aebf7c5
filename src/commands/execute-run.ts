import type { Context, Source } from "../cli/command.ts";
import type { FetchRequest } from "../cluster/fetch.ts";
import { findCluster, findNodes } from "../cluster/find-cluster.ts";
import { runOnCluster } from "../cluster/run-on-cluster.ts";
import { type RunRequest, firstMaster } from "../cluster/run-on-node.ts";
import type { NodeOutcome, NodesRun } from "../cluster/run-on-nodes.ts";
import { ClusterError, messageOf } from "../errors.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  nodeGroups,
  nodeReference,
} from "../model/cluster-record.ts";
import { outside } from "../outside-text.ts";
import type { BackendKind } from "../backend/contract.ts";
import { readPassword } from "./options.ts";
import type { Variable } from "./read-variable.ts";

export type RunInput = Readonly<Record<string, unknown>> & {
  readonly clusterId: string;
  readonly words: RunRequest["words"];
  readonly node: readonly string[];
  readonly loginUname: string | undefined;
  readonly loginPw: string | undefined;
  readonly syncDir: RunRequest["checkout"];
  readonly noTestEnv: boolean;
  readonly environment: readonly Variable[];
  readonly environmentFile: readonly (readonly Variable[])[];
  readonly fetch: readonly FetchRequest[];
  /** The shard that runs the command. Its name begins each line of output, even if the command runs on one node only. */
  readonly shard?: Source;
};

/** Resolves with the exit status of the command on the node, or with the highest one of several. */
export async function executeRun(
  kind: BackendKind,
  input: RunInput,
  context: Context,
): Promise<number> {
  const backend = await sparingCommandStatus(context, kind.open(input, context, context.signal));
  const password = await readPassword(input.loginPw, "Login", context);
  const { clusterId } = input;
  const variables = [...input.environmentFile.flat(), ...input.environment];
  const request = {
    words: input.words,
    login: { name: input.loginUname, password },
    // If a name is repeated, the last value wins.
    variables: Object.fromEntries(variables.map(({ name, contents }) => [name, contents])),
    hasTestEnvironment: !input.noTestEnv,
    missingFolderHint: context.nameFlags(
      "The platform brings it: run the wait command first, or pass `noTestEnv` to run without it.",
    ),
    checkout: input.syncDir,
    fetches: input.fetch,
  };
  const find = (signal: AbortSignal) =>
    sparingCommandStatus(context, findCluster(backend, clusterId, signal));
  const [node, ...others] = input.node;
  const { shard } = input;
  const hasLines =
    others.length > 0 || Object.hasOwn(nodeGroups, node ?? "") || shard !== undefined;
  if (hasLines || context.output.format === "json") {
    return executeOnNodes(
      await find(context.signal),
      { ...request, selectors: input.node, shard },
      context,
    );
  }
  const isTerminal = context.isTerminal.stdin && context.isTerminal.stdout;
  const runtime = { ...context, onConnecting: () => context.failuresExitWith(255) };
  const run = runOnCluster(
    { backend, clusterId, find, request: { ...request, node, isTerminal } },
    runtime,
    context.signal,
  );
  return sparingCommandStatus(context, run);
}

/** Failures that would exit with 1 or 4, such as a failed cloud request, exit with 255, because the command itself may exit with 1 or 4. */
async function sparingCommandStatus<Result>(
  context: Context,
  work: Promise<Result>,
): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ClusterError && (error.exitCode === 1 || error.exitCode === 4))
      context.failuresExitWith(255);
    throw error;
  }
}

interface NodesRequest extends Omit<NodesRun, "nodes" | "onLine" | "keepsLogins"> {
  readonly selectors: readonly string[];
  readonly shard: Source | undefined;
}

/** Resolves with the highest exit status of all nodes. Without a selector, the first running master is the only node. */
async function executeOnNodes(
  cluster: ClusterRecord,
  { selectors, shard, ...request }: NodesRequest,
  context: Context,
): Promise<number> {
  const { output, progress, signal } = context;
  const { runOnNodes } = await import("../cluster/run-on-nodes.ts");
  const nodes =
    selectors.length > 0
      ? findNodes(cluster, selectors)
      : [await firstMaster(cluster, context, signal)];
  const isAlone = shard !== undefined && nodes.length === 1;
  const nameOf = (node: NodeRecord): string =>
    shard === undefined ? nodeReference(node) : `${shard.name} ${nodeReference(node)}`;
  const sources = new Map(
    nodes.map((node, index) => [node, isAlone ? shard : { name: nameOf(node), index }]),
  );
  const outcomes = await runOnNodes(
    cluster,
    {
      ...request,
      nodes,
      keepsPaths: isAlone,
      keepsLogins: shard === undefined,
      isOutputClosed: () => output.isClosed,
      ...(output.format === "text" && {
        onLine: (node, stream, line) =>
          output.line(stream, sources.get(node) ?? { name: "", index: 0 }, line),
      }),
    },
    { ...context, onConnecting: () => context.failuresExitWith(255) },
    signal,
  );
  const failed = outcomes.filter(({ status }) => status !== 0);
  if (output.format === "text") for (const outcome of failed) progress.note(failureLine(outcome));
  output.result({ text: "", data: { nodes: outcomes.map(outcomeView) } });
  return Math.max(...outcomes.map(({ status }) => status));
}

const failureLine = ({ node, status, error }: NodeOutcome): string =>
  `${nodeReference(node)}: ${error === undefined ? `exited with status ${status}` : messageOf(error)}`;

const outcomeView = ({ node, status, stdout, stderr, error }: NodeOutcome) => ({
  reference: nodeReference(node),
  status,
  stdout: outside(stdout),
  stderr: outside(stderr),
  ...(error !== undefined && { error: { id: error.id, message: messageOf(error) } }),
});
