import { defineCommand } from "../cli/command.ts";
import { option } from "../cli/options/option.ts";
import { text } from "../cli/options/value-types.ts";
import type { BackendKind } from "../backend/contract.ts";
import { checkSummary, summarizingFailure, summary } from "./summary/step-summary.ts";
import { clusterOptions, junit, skipHttpChecks, timeout } from "./options.ts";

const waitOptions = {
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
  timeout: timeout("Time limit for the wait"),
  skipHttpChecks,
  summary,
  junit,
};

export const waitCommand = (kind: BackendKind) =>
  defineCommand({
    name: "wait",
    summary: "Wait until the platform is ready",
    description:
      "The platform is ready when the installation has succeeded on every node, every node's own check passes, every master answers over HTTP, the superuser can log in (enterprise only) and all agents are registered. A platform of your own is ready when every node's check passes and its web UI answers, if it has one. Until then, print for each node what is still missing. If an installation fails, stop at once. The cluster is kept in any case.",
    options: clusterOptions(kind, waitOptions),
    examples: [
      { words: "wait", summary: "Wait for the cluster `default`" },
      {
        words: "wait --summary",
        summary: "In GitHub Actions: show the result on the page of the run",
      },
      { words: "wait --junit report.xml", summary: "In any CI system: show each node as a test" },
      {
        words: "wait -c nightly --timeout 15m",
        summary: "Give up after 15 minutes, with exit code 4",
      },
    ],
    check: (given, problems, context) => checkSummary(given.summary, problems, context),
    run: async (input, context) => {
      const title = `Cluster ${input.clusterId} is not ready`;
      const { executeWait } = await import("./execute-wait.ts");
      const task = async (): Promise<void> => executeWait(kind, input, context);
      await summarizingFailure(title, { isWanted: input.summary, context }, task);
    },
  });
