import type { BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { createCluster } from "../../cluster/create.ts";
import { makeLogsFolder } from "../../cluster/logs.ts";
import { waitForCluster } from "../../cluster/wait-for-cluster.ts";
import { OwnError } from "../../errors.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { type PreparedCreate, prepareCreate } from "../create/create.ts";
import { describeCreated, summarizeCreated } from "../create/report-created.ts";
import { type RunInput, executeRun, loginPassword } from "../execute-run.ts";
import { type JunitReport, junitReport, readinessTest } from "../summary/junit-report.ts";
import type { OnceInput } from "./once-options.ts";
import { assertSavable, saveFailedCluster } from "./save-failed-cluster.ts";

/** The command on the node has ended with another status than 0. */
export class CommandFailed extends OwnError {
  override readonly name = "CommandFailed";
  readonly status: number;

  constructor(status: number) {
    super(`The command exited with status ${status}.`);
    this.status = status;
  }
}

type OneUse = OnceInput & Pick<RunInput, "shard">;

const creationTest = "The cluster is created";
const commandTest = "The command succeeds";

/** The options of `create` that `once` doesn't have. */
const asCreate = { wait: true, dryRun: false, output: "text" } as const;

/** Resolves when the command has succeeded and the cluster is gone. Throws `CommandFailed`, and what `create`, `wait` and `run` throw. */
export async function executeOnce(kind: BackendKind, input: OneUse, context: Context): Promise<void> {
  const { clusterId, junit: file } = input;
  const report = junitReport({ file, clusterId, tests: [creationTest, readinessTest, commandTest] }, context);
  report.enter(creationTest);
  await report.during(async () => useCluster(kind, input, report, context));
}

async function useCluster(kind: BackendKind, input: OneUse, report: JunitReport, context: Context): Promise<void> {
  const { logsDir } = input;
  const prepared = await prepareCreate(kind, { ...input, ...asCreate }, context);
  const loginPw = await loginPassword(input.loginPw, context);
  if (logsDir !== undefined) await makeLogsFolder(logsDir);
  await assertSavable(input, context);
  const use = async (cluster: ClusterRecord): Promise<void> => {
    try {
      report.enter(readinessTest);
      await untilReady(cluster, { prepared, input, report }, context);
      report.enter(commandTest);
      await runCommand(kind, { ...input, loginPw }, context);
    } catch (error) {
      await saveFailedCluster(prepared.backend, input, context);
      throw error;
    }
    await summarizeCreated("The command succeeded", { cluster, input }, context);
  };
  const { machines } = prepared.request;
  const copied = "from" in machines ? { ...machines, copies: input.shards } : machines;
  const request = { ...prepared.request, machines: copied, use, ...(logsDir !== undefined && { logsFolder: logsDir }) };
  await createCluster(request, prepared, context, context.signal);
}

async function runCommand(kind: BackendKind, input: OneUse, context: Context): Promise<void> {
  const status = await executeRun(kind, input, context);
  if (status === 0) return;
  const failure = new CommandFailed(status);
  context.progress.note(failure.message);
  throw failure;
}

interface Waiting {
  readonly prepared: PreparedCreate;
  readonly input: OneUse;
  readonly report: JunitReport;
}

async function untilReady(
  cluster: ClusterRecord,
  { prepared: { backend, request, login }, input, report }: Waiting,
  context: Context,
): Promise<void> {
  describeCreated(cluster, `Cluster "${cluster.id}" exists`, context);
  const { deadlineMs } = request;
  const { skipHttpChecks } = input;
  const wait = { clusterId: cluster.id, login, skipHttpChecks, deadlineMs, onAnswers: report.onAnswers };
  await waitForCluster(backend, wait, context, context.signal);
  context.progress.waiting("");
  context.progress.note(`Cluster "${cluster.id}" is ready.`);
}
