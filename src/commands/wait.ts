import { defineCommand, type Context } from "../cli/command.ts";
import { option, type ValuesOf } from "../cli/options/option.ts";
import { outputFormat, text, verbose } from "../cli/options/value-types.ts";
import { timeLimit } from "../system/time-limit.ts";
import type { BackendKind } from "../backend/contract.ts";
import { placeOptions } from "./backend-options.ts";
import { appendSummary, checkSummary, summarizingFailure, summary } from "./summary/step-summary.ts";
import { clusterId, skipHttpChecks, timeout } from "./options.ts";

const waitOptions = (kind: BackendKind) => ({
  clusterId,
  ...placeOptions(kind),
  superuserUsername: option(text, {
    flag: "--superuser-username",
    summary: "The superuser's name (enterprise only)",
    default: "admin",
  }),
  superuserPassword: option(text, {
    flag: "--superuser-password",
    summary:
      'The superuser\'s password (enterprise only); "-" (recommended) prompts on a terminal or reads a line from stdin',
    default: "admin",
    secret: true,
  }),
  timeout: timeout("Time limit for the wait", "60m", 60 * 60 * 1000),
  skipHttpChecks,
  summary,
  output: outputFormat(["text", "json"]),
  verbose,
});

type WaitInput = ValuesOf<ReturnType<typeof waitOptions>>;

export const waitCommand = (kind: BackendKind) =>
  defineCommand({
    name: "wait",
    summary: "Wait until the platform is ready",
    description:
      "The platform is ready when the installation has succeeded on every node, every node's own check passes, every master answers over HTTP, the superuser can log in (enterprise only) and all agents are registered. A platform of your own is ready when every node's check passes and its web UI answers, if it has one. Until then, print for each node what is still missing. If an installation fails, stop at once.",
    positionals: {},
    options: waitOptions(kind),
    examples: [
      { words: "wait", summary: "Wait for the cluster `default`" },
      { words: "wait --summary", summary: "In GitHub Actions: show the result on the page of the run" },
      { words: "wait -c nightly --timeout 15m", summary: "Give up after 15 minutes, with exit code 4" },
    ],
    check: (given, problems, context) => checkSummary(given.summary, problems, context),
    run: async (input, context) => {
      const title = `Cluster ${input.clusterId} is not ready`;
      const task = async (): Promise<void> => wait(kind, input, context);
      await summarizingFailure(title, { isWanted: input.summary, context }, task);
    },
  });

async function wait(kind: BackendKind, input: WaitInput, context: Context): Promise<void> {
  const { waitForCluster, waitTooSlow } = await import("../cluster/wait-for-cluster.ts");
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
  const [{ clusterView, durationText }, { renderCluster }] = await Promise.all([
    import("./cluster-view.ts"),
    import("./summary/render-summary.ts"),
  ]);
  const view = clusterView(cluster, context.clock.now());
  const markdown = renderCluster("Cluster ready", view, [["Waited", durationText(seconds)]]);
  await appendSummary(input.summary, markdown, context);
  context.output.result({ text: "", data: { cluster: { id: cluster.id }, ready: true, seconds } });
}
