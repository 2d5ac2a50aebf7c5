import { defineCommand } from "../cli/command.ts";
import { option } from "../cli/options/option.ts";
import { outputFormat, verbose } from "../cli/options/shared-options.ts";
import { text } from "../cli/options/value-types.ts";
import type { Driver } from "./driver.ts";
import { clusterId, skipHttpChecks, timeout } from "./options.ts";

export const waitCommand = (driver: Driver) =>
  defineCommand({
    name: "wait",
    summary: "Wait for the cluster software to start",
    description:
      "Wait until the installation has succeeded on every node, every node's own check passes, every master answers over HTTP, the superuser can log in (enterprise only) and all agents are registered. Meanwhile, print for each node what is still missing. If an installation fails, stop at once.",
    positionals: {},
    options: {
      clusterId,
      ...driver.placeOptions,
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
      output: outputFormat(["text", "json"]),
      verbose,
    },
    examples: [
      { words: "wait", summary: "Wait for the cluster `default`" },
      { words: "wait -c nightly --timeout 15m", summary: "Give up after 15 minutes, with exit code 4" },
    ],
    run: async (input, context) => {
      const { waitForCluster } = await import("../cluster/wait-for-cluster.ts");
      const backend = await driver.open(input, context, context.signal);
      const given = input.superuserPassword;
      const password = given === "-" ? await context.stdin.readSecret("Superuser password: ", context.signal) : given;
      const startMs = context.clock.now();
      const request = {
        clusterId: input.clusterId,
        login: { username: input.superuserUsername, password },
        skipHttpChecks: input.skipHttpChecks,
        deadlineMs: startMs + input.timeout,
      };
      const cluster = await waitForCluster(backend, request, context, context.signal);
      const seconds = Math.round((context.clock.now() - startMs) / 1000);
      context.progress.note(`Cluster "${cluster.id}" is ready after ${seconds} s.`);
      context.output.result({ text: "", data: { cluster: { id: cluster.id }, ready: true, seconds } });
    },
  });
