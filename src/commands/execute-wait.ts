import type { BackendKind } from "../backend/contract.ts";
import type { Context } from "../cli/command.ts";
import { waitForCluster, waitTooSlow } from "../cluster/wait-for-cluster.ts";
import { timeLimit } from "../system/time-limit.ts";
import { clusterView, durationText } from "./cluster-view.ts";
import { renderCluster } from "./summary/render-summary.ts";
import { appendSummary } from "./summary/step-summary.ts";

type WaitInput = Readonly<Record<string, unknown>> & {
  readonly clusterId: string;
  readonly superuserUsername: string;
  readonly superuserPassword: string;
  readonly timeout: number;
  readonly skipHttpChecks: boolean;
  readonly summary: boolean;
};

/** Waits, and prints the result. */
export async function executeWait(kind: BackendKind, input: WaitInput, context: Context): Promise<void> {
  const given = input.superuserPassword;
  const password = given === "-" ? await context.stdin.readSecret("Superuser password: ", context.signal) : given;
  const startMs = context.clock.now();
  using limit = timeLimit(input.timeout, waitTooSlow(input.clusterId));
  const backend = await kind.open(input, context, AbortSignal.any([context.signal, limit.signal]));
  const request = {
    clusterId: input.clusterId,
    login: { username: input.superuserUsername, password },
    skipHttpChecks: input.skipHttpChecks,
    deadlineMs: startMs + input.timeout,
  };
  const cluster = await waitForCluster(backend, request, context, context.signal);
  const seconds = Math.round((context.clock.now() - startMs) / 1000);
  context.progress.note(`Cluster "${cluster.id}" is ready after ${seconds} s.`);
  const view = clusterView(cluster, context.clock.now());
  const markdown = renderCluster("Cluster ready", view, [["Waited", durationText(seconds)]]);
  await appendSummary(input.summary, markdown, context);
  context.output.result({ text: "", data: { cluster: { id: cluster.id }, ready: true, seconds } });
}
