import type { Context } from "../cli/command.ts";
import type { FetchRequest } from "../cluster/fetch.ts";
import { findCluster } from "../cluster/find-cluster.ts";
import { runOnCluster } from "../cluster/run-on-cluster.ts";
import type { RunRequest } from "../cluster/run-on-node.ts";
import { ClusterError } from "../errors.ts";
import type { BackendKind } from "../backend/contract.ts";
import type { Variable } from "./read-variable.ts";

export type RunInput = Readonly<Record<string, unknown>> & {
  readonly clusterId: string;
  readonly words: RunRequest["words"];
  readonly node: string | undefined;
  readonly loginUname: string | undefined;
  readonly loginPw: string | undefined;
  readonly syncDir: RunRequest["checkout"];
  readonly noTestEnv: boolean;
  readonly environment: readonly Variable[];
  readonly environmentFile: readonly (readonly Variable[])[];
  readonly fetch: readonly FetchRequest[];
};

/** Resolves with the exit status of the command on the node. */
export async function executeRun(kind: BackendKind, input: RunInput, context: Context): Promise<number> {
  const backend = await sparingCommandStatus(context, kind.open(input, context, context.signal));
  const password = await loginPassword(input.loginPw, context);
  const { clusterId } = input;
  const request = {
    words: input.words,
    node: input.node,
    login: { name: input.loginUname, password },
    variables: variablesOf([...input.environmentFile.flat(), ...input.environment]),
    hasTestEnvironment: !input.noTestEnv,
    missingFolderHint:
      "The platform brings it: wait for the installation with the wait command, or pass --no-test-env to run without it.",
    checkout: input.syncDir,
    fetches: input.fetch,
    isTerminal: context.isTerminal.stdin && context.isTerminal.stdout,
  };
  const find = (signal: AbortSignal) => sparingCommandStatus(context, findCluster(backend, clusterId, signal));
  const runtime = { ...context, onConnecting: () => context.failuresExitWith(255) };
  return runOnCluster({ backend, clusterId, find, request }, runtime, context.signal);
}

/** Failures that would exit with 1 or 4, such as a failed cloud request, exit with 255, because the command itself may exit with 1 or 4. */
async function sparingCommandStatus<Result>(context: Context, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ClusterError && (error.exitCode === 1 || error.exitCode === 4)) context.failuresExitWith(255);
    throw error;
  }
}

/** If a name is repeated, the last value wins. */
function variablesOf(variables: readonly Variable[]): Readonly<Record<string, string>> {
  return Object.fromEntries(variables.map(({ name, contents }) => [name, contents]));
}

async function loginPassword(given: string | undefined, { stdin, signal }: Context): Promise<string | undefined> {
  return given === "-" ? stdin.readSecret("Login password: ", signal) : given;
}
