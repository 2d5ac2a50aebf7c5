import { join } from "node:path";
import type { BackendKind } from "../../backend/contract.ts";
import type { Context, Source } from "../../cli/command.ts";
import { originOf } from "../../cli/error-report.ts";
import { inFolder } from "../../cluster/run-on-nodes.ts";
import { ClusterError } from "../../errors.ts";
import { numbered } from "../../system/amounts.ts";
import { failureText, summarizingFailure } from "../summary/step-summary.ts";
import { CommandFailed, executeOnce, readSecrets } from "./execute-once.ts";
import { type OnceInput, shardClusterId, shardName } from "./once-options.ts";
import { ShardProgress, type Waits } from "./shard-progress.ts";
import { chaosTitle } from "./with-chaos.ts";

type ShardsInput = OnceInput & { readonly shards: number };

interface Shared {
  readonly waits: Waits;
  /** Why shards have failed. Each reason is printed once. */
  readonly reasons: Set<string>;
}

const bugExitCode = 70;

/**
 * Runs the command on several copies of a cluster at once. A shard that fails doesn't stop the
 * others. Resolves with the highest exit code of all, once all copies are gone. If that isn't a
 * command's, throws that shard's error.
 */
export async function executeShards(
  kind: BackendKind,
  input: ShardsInput,
  context: Context,
): Promise<number> {
  const { shards } = input;
  const all = { ...input, ...(await readSecrets(input, context)) };
  const shared: Shared = { waits: new Map(), reasons: new Set() };
  const numbers = Array.from({ length: shards }, (_, index) => index + 1);
  const outcomes = await Promise.all(
    numbers.map(async (number) => {
      const shard = { name: shardName(number), index: number - 1 };
      return runShard(kind, { ...ofShard(all, number), shard }, shared, context);
    }),
  );
  context.signal.throwIfAborted();
  const failed = outcomes.filter(({ exitCode }) => exitCode !== 0);
  const exitCode = Math.max(...outcomes.map((outcome) => outcome.exitCode));
  if (exitCode === 0) return 0;
  const names = failed.map(({ name }) => name).join(", ");
  context.progress.note(`${failed.length} of ${numbered(shards, "shard")} failed: ${names}.`);
  const worst = failed.filter((outcome) => outcome.exitCode === exitCode);
  const [first] = worst;
  if (first === undefined || worst.some(({ error }) => error === undefined)) return exitCode;
  context.failuresExitWith(exitCode);
  throw first.error;
}

/** Returns the input of one shard: it has its own cluster, and its files are in its own folder. */
export function ofShard(input: ShardsInput, number: number): OnceInput {
  const { clusterId, shards, environment, fetch, junit, report, logsDir, saveOnFailure, chaos } =
    input;
  const name = shardName(number);
  const fetchedTo = (path: string): string => {
    const target = fetch.find(({ local }) => path === local || path.startsWith(`${local}/`));
    if (target === undefined) return path;
    return `${inFolder(target.local, name)}${path.slice(target.local.length)}`;
  };
  const variables = { CLUSTER_SHARD: String(number), CLUSTER_SHARDS: String(shards) };
  const own = Object.entries(variables).map(([key, contents]) => ({ name: key, contents }));
  return {
    ...input,
    clusterId: shardClusterId(clusterId, number),
    environment: [...own, ...environment],
    fetch: fetch.map(({ remote, local }) => ({ remote, local: inFolder(local, name) })),
    junit: junit && inFolder(junit, name),
    report: report && inFolder(report, name),
    junitFrom: input.junitFrom.map(fetchedTo),
    logsDir: logsDir && join(logsDir, name),
    saveOnFailure: saveOnFailure && inFolder(saveOnFailure, name),
    chaos: chaos && { ...chaos, seed: (chaos.seed + number - 1) % 2 ** 32 },
  };
}

async function runShard(
  kind: BackendKind,
  input: OnceInput & { readonly shard: Source },
  { waits, reasons }: Shared,
  context: Context,
) {
  const { name } = input.shard;
  const progress = new ShardProgress(context.progress, { name, waits, clock: context.clock });
  const { log } = progress;
  const failure: { exitCode?: number } = {};
  const failuresExitWith = (exitCode: number): void => void (failure.exitCode = exitCode);
  const { output } = context;
  const own = {
    ...context,
    progress,
    failuresExitWith,
    logPath: () => log.path,
    // The program has one result, not one for each shard.
    output: {
      format: output.format,
      get isClosed() {
        return output.isClosed;
      },
      result: () => {},
      line: output.line.bind(output),
    },
  };
  const title = `Cluster ${input.clusterId}: failed${chaosTitle(input.chaos)}`;
  try {
    const task = async (): Promise<void> => executeOnce(kind, input, own);
    await summarizingFailure(title, { isWanted: input.summary, context: own }, task);
    return { name, exitCode: 0 };
  } catch (error) {
    if (error instanceof CommandFailed) return { name, exitCode: error.status };
    const origin = originOf(error);
    const reason = failureText(error, own);
    const explanation = reasons.has(reason)
      ? ["it failed for the same reason"]
      : ["it failed", reason];
    reasons.add(reason);
    if (!context.signal.aborted) progress.note([...explanation, ...logLine(log.path)].join("\n"));
    const exitCode =
      failure.exitCode ?? (origin instanceof ClusterError ? origin.exitCode : bugExitCode);
    // The error says why the exit code isn't the command's.
    return { name, exitCode, error };
  } finally {
    progress.waiting("");
    log.close();
  }
}

const logLine = (path: string | undefined): readonly string[] =>
  path === undefined ? [] : [`Log: ${path}`];
