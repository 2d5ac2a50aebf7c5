import type { BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { createCluster } from "../../cluster/create.ts";
import { makeLogsFolder } from "../../cluster/logs/save-logs.ts";
import { waitForCluster } from "../../cluster/wait-for-cluster.ts";
import type { Trouble } from "../../cluster/watch/start-watch.ts";
import { OwnError, hasErrorId, messageOf, revised } from "../../errors.ts";
import { optionName } from "../../references.ts";
import type { ClusterRecord, Counts } from "../../model/cluster-record.ts";
import { type PreparedCreate, prepareCreate } from "../create/create.ts";
import { describeCreated, summarizeCreated } from "../create/report-created.ts";
import { assertChaosFits } from "../../cluster/faults/chaos-plan.ts";
import { chaosText } from "../fault/chaos-text.ts";
import { type RunInput, executeRun } from "../run/execute-run.ts";
import { troubleLines } from "../run/with-watch.ts";
import { readPassword } from "../options.ts";
import { type JunitReport, junitReport, readinessTest } from "../summary/junit-report.ts";
import { type CachedCluster, findCached } from "./cached-cluster.ts";
import type { OnceInput } from "./once-options.ts";
import { type Chaos, chaosTitle, withChaos } from "./with-chaos.ts";
import { assertSavable, saveFailedCluster, saveForLater } from "./save-cluster.ts";

/** The command on the node has ended with another status than 0. */
export class CommandFailed extends OwnError {
  override readonly name = "CommandFailed";
  readonly status: number;

  /** With what went wrong on the nodes meanwhile, which may be why. */
  constructor(status: number, troubles: readonly Trouble[]) {
    const lines =
      troubles.length === 0 ? "" : ` While it ran, on the nodes:${troubleLines(troubles)}`;
    super(`The command exited with status ${status}.${lines}`);
    this.status = status;
  }
}

type OneUse = OnceInput & Pick<RunInput, "shard" | "onTrouble"> & Pick<Chaos, "onFault">;

const creationTest = "The cluster is created";
const commandTestOf = ({ chaos }: OneUse): string => `The command succeeds${chaosTitle(chaos)}`;
const testsOf = (input: OneUse): readonly string[] => [
  creationTest,
  readinessTest,
  commandTestOf(input),
];
/** The value of `--chaos` that repeats the plan, also if its seed was drawn. */
const repetitionOf = ({ chaos }: OneUse): string | undefined => chaos && chaosText(chaos);

/** The options of `create` that `once` doesn't have. */
const asCreate = { wait: true, dryRun: false, replace: false, output: "text" } as const;

/**
 * Resolves when the command has succeeded and the cluster is gone. Throws `CommandFailed`, and the
 * errors of `create`, `wait` and `run`.
 */
export async function executeOnce(
  kind: BackendKind,
  given: OneUse,
  context: Context,
): Promise<void> {
  const { clusterId, junit: file } = given;
  const tests = junitReport(
    { file, clusterId, chaos: repetitionOf(given), tests: testsOf(given) },
    context,
  );
  await tests.during(async () => {
    const input = { ...given, ...(await readSecrets(given, context)) };
    const cached = await findCached(kind, input, context);
    if (cached?.exists === true && (await useCached(kind, { ...input, cached, tests }, context)))
      return;
    await useCluster(kind, { ...input, cached, tests }, context);
  });
}

/** Reads the passwords before anything else, because stdin gives each of them only once. */
export async function readSecrets(
  { superuserPassword, loginPw }: Pick<OnceInput, "superuserPassword" | "loginPw">,
  context: Context,
) {
  return {
    superuserPassword: await readPassword(superuserPassword, "Superuser", context),
    loginPw: await readPassword(loginPw, "Login", context),
  };
}

interface Use extends OneUse {
  readonly cached: CachedCluster | undefined;
  readonly tests: JunitReport;
  /** The state of a cluster from the cache; absent for other clusters. */
  readonly attempt?: { isReady: boolean };
}

const cachedLimitMs = 10 * 60_000;

/**
 * Runs the command on a cluster from the cache. Resolves with false if that cluster did not become ready, for whatever
 * reason; then nothing of it is left.
 */
async function useCached(
  kind: BackendKind,
  use: Use & { readonly cached: CachedCluster },
  context: Context,
): Promise<boolean> {
  const { path, snapshot } = use.cached;
  const from = { location: { path, shown: path }, snapshot };
  const attempt = { isReady: false };
  try {
    await useCluster(
      kind,
      { ...use, from, timeout: Math.min(use.timeout, cachedLimitMs), attempt },
      context,
    );
    return true;
  } catch (error) {
    if (attempt.isReady || context.signal.aborted) throw error;
    context.progress.note(`${messageOf(error)}\nThe platform is installed instead.`);
    use.tests.enter(creationTest);
    return false;
  }
}

async function useCluster(kind: BackendKind, input: Use, context: Context): Promise<void> {
  const { logsDir, cached, tests, attempt } = input;
  const prepared = await prepareCreate(kind, { ...input, ...asCreate }, context);
  const { machines } = prepared.request;
  // A mistake is found before anything costs time or money.
  const assertPlan = ({ counts }: { readonly counts: Counts }): void => {
    if (input.chaos !== undefined)
      assertChaosFits({ backend: prepared.backend.name, counts }, input.chaos);
  };
  if ("counts" in machines) assertPlan(machines);
  const writeReport = reporter(prepared.backend, input, context);
  if (logsDir !== undefined) await makeLogsFolder(logsDir);
  await assertSavable(input, context);
  const use = async (cluster: ClusterRecord): Promise<void> => {
    try {
      tests.enter(readinessTest);
      await untilReady(cluster, { prepared, input, tests }, context);
      if (attempt !== undefined) attempt.isReady = true;
      else if (cached !== undefined)
        await saveForLater(prepared.backend, cluster.id, cached, context);
      tests.enter(commandTestOf(input));
      const used = { ...input, backend: prepared.backend, onTrouble: tests.onTrouble };
      await runCommand(kind, used, context);
    } catch (error) {
      const bringBack =
        attempt?.isReady === false
          ? undefined
          : await saveFailedCluster(kind, prepared.backend, input, context);
      await writeReport(cluster, error, bringBack);
      if (input.keepOnFailure || !hasErrorId(error, "connection-failed")) throw error;
      // The usual hint is to inspect the cluster, which is gone when the error is printed.
      throw revised(error, {
        hint: `Look at the saved logs, or pass ${optionName("keepOnFailure")} to look at the node.`,
      });
    }
    await writeReport(cluster);
    await summarizeCreated("The command succeeded", { cluster, input }, context);
  };
  const request = {
    ...prepared.request,
    machines: "from" in machines ? { ...machines, copies: input.shards } : machines,
    use,
    assertPlan,
    logsFolder: logsDir,
    // A cluster from the cache that never became ready is not worth keeping.
    get keepOnFailure(): boolean {
      return input.keepOnFailure && attempt?.isReady !== false;
    },
  };
  try {
    await createCluster(context, request, prepared);
  } catch (error) {
    await writeReport(undefined, error);
    throw error;
  }
}

/**
 * Returns what writes the report, if the user wants one: of the cluster while it exists, or else of
 * what it has left. Only its first call writes, and another one if that was interrupted.
 */
function reporter(
  backend: PreparedCreate["backend"],
  { attempt, ...input }: Omit<Use, "tests">,
  context: Context,
) {
  const state = { isReported: false };
  // File systems have coarse clocks.
  const sinceMs = context.clock.now() - 1000;
  return async (cluster?: ClusterRecord, failure?: unknown, bringBack?: string): Promise<void> => {
    const { clusterId, report: file, junitFrom: junit, logsDir } = input;
    // An interrupted command ends its machines first.
    if (file === undefined || state.isReported || (cluster && context.signal.aborted)) return;
    // Another attempt follows, and has a report of its own.
    if (failure !== undefined && attempt?.isReady === false && !context.signal.aborted) return;
    state.isReported = true;
    const wasRunning = !context.signal.aborted;
    const { tryToReport } = await import("../report/write-cluster-report.ts");
    const isGood = failure === undefined;
    const given = {
      clusterId,
      file,
      cluster,
      junit,
      junitSinceMs: sinceMs,
      logsFolder: logsDir === undefined ? undefined : { path: logsDir, sinceMs },
      bringBack,
      chaos: repetitionOf(input),
      result: { isGood, text: isGood ? "" : messageOf(failure) },
    };
    await tryToReport(backend, given, context);
    // What an interrupt has ended is written once the machines have ended.
    if (wasRunning && context.signal.aborted) state.isReported = false;
  };
}

async function runCommand(
  kind: BackendKind,
  { backend, ...input }: OneUse & Pick<PreparedCreate, "backend">,
  context: Context,
): Promise<void> {
  const { clusterId, chaos, onFault, keepOnFailure } = input;
  // After an interruption the cluster goes as it is.
  const abandon = keepOnFailure ? undefined : context.signal;
  const troubles: Trouble[] = [];
  const onTrouble = (trouble: Trouble): void => {
    troubles.push(trouble);
    input.onTrouble?.(trouble);
  };
  const command = async (): Promise<number> =>
    executeRun(kind, { ...input, watch: true, onTrouble }, context);
  const status =
    chaos === undefined
      ? await command()
      : await withChaos(backend, { clusterId, options: chaos, onFault, abandon }, context, command);
  if (status === 0) return;
  const failure = new CommandFailed(status, troubles);
  context.progress.note(failure.message);
  throw failure;
}

interface Waiting {
  readonly prepared: PreparedCreate;
  readonly input: OneUse;
  readonly tests: JunitReport;
}

async function untilReady(
  cluster: ClusterRecord,
  { prepared: { backend, request, login }, input, tests }: Waiting,
  context: Context,
): Promise<void> {
  const { from, skipHttpChecks } = input;
  const origin =
    from !== undefined && "location" in from && "path" in from.location
      ? `, from ${from.location.shown}`
      : "";
  describeCreated(cluster, `Cluster "${cluster.id}" has been created${origin}`, context);
  const { deadlineMs } = request;
  const wait = {
    clusterId: cluster.id,
    login,
    skipHttpChecks,
    deadlineMs,
    onAnswers: tests.onAnswers,
  };
  await waitForCluster(context, backend, wait);
  context.progress.waiting("");
  context.progress.note(`Cluster "${cluster.id}" is ready.`);
}
