import type { Context, Source } from "../../cli/command.ts";
import type { FetchRequest } from "../../cluster/fetch.ts";
import { findCluster } from "../../cluster/find-cluster.ts";
import { runOnCluster } from "../../cluster/run-on-cluster.ts";
import type { RunRequest } from "../../cluster/run-on-node.ts";
import { wantedStatus } from "../../cluster/run/run-until.ts";
import { ClusterError } from "../../errors.ts";
import { optionName, runCommand } from "../../references.ts";
import { nodeGroups } from "../../model/cluster-record.ts";
import type { Backend, BackendKind } from "../../backend/contract.ts";
import { readPassword } from "../options.ts";
import type { WatchInput, Watched } from "./with-watch.ts";
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
  readonly local: boolean;
  readonly user: string | undefined;
  /** Milliseconds. Only `run` has this and the next option. */
  readonly until?: number | undefined;
  readonly fails?: boolean;
  /** Whether the nodes are watched while the command runs. */
  readonly watch: boolean;
  readonly ignore: WatchInput["ignore"];
  readonly onTrouble?: WatchInput["onTrouble"];
  /**
   * The shard that runs the command. Its name begins each line of output, even if the command runs
   * on one node only.
   */
  readonly shard?: Source;
};

/**
 * Resolves with the exit status of the command on the node, or with the highest one of several.
 * Throws `trouble-noticed` if something goes wrong on the nodes that are watched.
 */
export async function executeRun(
  kind: BackendKind,
  input: RunInput,
  context: Context,
): Promise<number> {
  const { clusterId, watch } = input;
  const opening: Promise<Backend<unknown>> = kind.open(context, input);
  const backend = await sparingCommandStatus(context, opening);
  if (!watch) return await execute(backend, input, context);
  const { withWatch } = await import("./with-watch.ts");
  const find = findCluster(backend, clusterId, context.signal);
  const cluster = await sparingCommandStatus(context, find);
  const command = async (watched: Watched): Promise<number> =>
    execute(backend, input, context, watched);
  return await withWatch({ backend, cluster }, input, context, command);
}

async function execute(
  backend: Backend<unknown>,
  input: RunInput,
  context: Context,
  watched?: Watched,
): Promise<number> {
  const password = await readPassword(input.loginPw, "Login", context);
  const { clusterId } = input;
  const variables = [...input.environmentFile.flat(), ...input.environment];
  const request = {
    words: input.words,
    fails: input.fails === true,
    user: input.user,
    login: { name: input.loginUname, password },
    // If a name is repeated, the last value wins.
    variables: Object.fromEntries(variables.map(({ name, contents }) => [name, contents])),
    hasTestEnvironment: !input.noTestEnv,
    missingFolderHint: context.nameFlags(
      `The platform brings it: ${runCommand("wait", "run")} first, or pass ${optionName("noTestEnv")} to run without it.`,
    ),
    checkout: input.syncDir,
    fetches: input.fetch,
    keepsOutput: watched?.knowsSecrets === true,
  };
  const find = (signal: AbortSignal) =>
    sparingCommandStatus(context, findCluster(backend, clusterId, signal));
  const [node, ...others] = input.node;
  const { shard } = input;
  const wanted = { fails: request.fails, isRemote: !input.local };
  const repetition = { shard, wanted, untilMs: input.until };
  if (input.local) {
    const { executeLocal } = await import("./execute-local.ts");
    const cluster = await find(context.signal);
    const run = executeLocal(cluster, { ...request, ...repetition, scope: backend.scope }, context);
    return sparingCommandStatus(context, run);
  }
  const isAlone = others.length === 0 && !Object.hasOwn(nodeGroups, node ?? "");
  const hasLines = !isAlone || shard !== undefined || input.until !== undefined;
  if (hasLines || context.output.format === "json") {
    const { executeOnNodes } = await import("./execute-on-nodes.ts");
    const nodes = { ...request, ...repetition, selectors: input.node, isAlone };
    return executeOnNodes({ ...nodes, find, troubles: watched?.findTroubles }, context);
  }
  const isTerminal = context.isTerminal.stdin && context.isTerminal.stdout;
  const runtime = { ...context, onConnecting: () => context.failuresExitWith(255) };
  const run = runOnCluster(runtime, {
    backend,
    clusterId,
    find,
    request: { ...request, node, isTerminal },
  });
  const status = await sparingCommandStatus(context, run);
  if (repetition.wanted.fails && status === 0) context.progress.note("The command succeeded.");
  return wantedStatus(status, repetition.wanted);
}

/**
 * Failures that would exit with 1 or 4, such as a failed cloud request, exit with 255, because the
 * command itself may exit with 1 or 4.
 */
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
