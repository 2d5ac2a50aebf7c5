import type { BackendKind } from "../backend/contract.ts";
import type { Context } from "../cli/command.ts";
import { waitForCluster } from "../cluster/wait-for-cluster.ts";
import { endedBy, passedMs } from "../system/runtime.ts";
import { timeLimit, tooSlow } from "../system/time-limit.ts";
import { durationText } from "../system/amounts.ts";
import { ClusterError, type ErrorId } from "../errors.ts";
import type { JsonResults } from "./json-results.ts";
import { readPassword } from "./options.ts";
import { ageOf, keptNote, readyText } from "./create/report-created.ts";
import { renderCluster } from "./summary/render-summary.ts";
import { type JunitReport, junitReport, readinessTest } from "./summary/junit-report.ts";
import { appendSummary } from "./summary/step-summary.ts";

type WaitInput = Readonly<Record<string, unknown>> & {
  readonly clusterId: string;
  readonly superuserUsername: string;
  readonly superuserPassword: string;
  readonly timeout: number;
  readonly skipHttpChecks: boolean;
  readonly summary: boolean;
  readonly junit: string | undefined;
};

/** The ids of errors after which the cluster still exists. */
const keptAfter: ReadonlySet<ErrorId> = new Set([
  "deadline-passed",
  "install-failed",
  "login-refused",
  "machine-failed",
]);

export async function executeWait(
  kind: BackendKind,
  input: WaitInput,
  context: Context,
): Promise<void> {
  const report = junitReport(
    { file: input.junit, clusterId: input.clusterId, tests: [readinessTest] },
    context,
  );
  await report.during(async () => waitAndReport(kind, input, report, context));
}

async function waitAndReport(
  kind: BackendKind,
  input: WaitInput,
  { onAnswers }: JunitReport,
  context: Context,
): Promise<void> {
  const password = await readPassword(input.superuserPassword, "Superuser", context);
  const startMs = passedMs(context.clock);
  using limit = timeLimit(input.timeout, tooSlow("Waiting for", input.clusterId));
  const backend = await kind.open(endedBy(context, limit), input);
  const request = {
    clusterId: input.clusterId,
    login: { username: input.superuserUsername, password },
    skipHttpChecks: input.skipHttpChecks,
    deadlineMs: startMs + input.timeout,
    onAnswers,
  };
  const cluster = await waitForCluster(context, backend, request).catch((error: unknown) => {
    const isKept =
      context.signal.aborted || (error instanceof ClusterError && keptAfter.has(error.id));
    if (isKept)
      context.progress.note(
        keptNote(kind, { id: request.clusterId, scope: input, error }, context),
      );
    throw error;
  });
  const seconds = Math.round((passedMs(context.clock) - startMs) / 1000);
  const ageSeconds = ageOf(cluster, context.clock.now());
  context.progress.note(readyText(cluster.id, seconds, ageSeconds));
  const more = [["Ready after", durationText(ageSeconds ?? seconds)]] as const;
  const markdown = renderCluster({ title: "Cluster ready", cluster, more }, context.clock.now());
  await appendSummary(input.summary, markdown, context);
  context.output.result({
    text: "",
    data: {
      cluster: { id: cluster.id },
      ready: true,
      seconds,
      ageSeconds,
    } satisfies JsonResults["wait"],
  });
}
