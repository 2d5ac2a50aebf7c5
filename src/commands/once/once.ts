import { defineCommand } from "../../cli/command.ts";
import { argumentAfterDashes, flag, option } from "../../cli/options/option.ts";
import { directoryPath } from "../../cli/options/value-types.ts";
import type { BackendKind } from "../../backend/contract.ts";
import { createArguments } from "../create/create.ts";
import { checkFile, createOptions } from "../create/create-options.ts";
import { junit, skipHttpChecks, temporaryClusterId, timeout } from "../options.ts";
import { checkFetches, nodesOption, sessionOptions } from "../run.ts";
import { checkSummary, summarizingFailure } from "../summary/step-summary.ts";

const onceArguments = {
  ...createArguments,
  words: argumentAfterDashes({ name: "-- COMMAND", summary: "The command and its arguments, as for `run`" }),
};

/** Those of `create` and `run`, except for what makes no sense if the cluster is always waited for, used and removed. */
function onceOptions(kind: BackendKind) {
  const { wait: _wait, dryRun: _dryRun, output: _output, verbose, ...create } = createOptions(kind);
  return {
    ...create,
    keepOnFailure: flag({ flag: "--keep-on-failure", summary: "Keep the cluster if anything fails, even the command" }),
    timeout: timeout("Time limit until the platform is ready; the command has none", "60m", 60 * 60 * 1000),
    clusterId: temporaryClusterId,
    skipHttpChecks,
    ...sessionOptions,
    node: nodesOption(kind),
    logsDir: option(directoryPath, {
      flag: "--logs-dir",
      summary: "Folder for the logs after a failure; created if it does not exist",
      defaultText: "the cluster's state folder",
    }),
    junit,
    verbose,
  };
}

export const onceCommand = (kind: BackendKind) =>
  defineCommand({
    name: "once",
    summary: "Run a command on a cluster that exists only for it",
    description:
      "Create a cluster, wait until the platform is ready, run the command on a node, fetch files, and remove the cluster, whatever happens. The options are those of `create`, `wait` and `run`, and the command line follows the rules of `run`. The exit code is the command's; if this program fails before it connects to run it, the exit code is that of `create` and `wait`, and later 255.\n\nIf anything fails, even the command, the logs of all nodes are saved first. On Ctrl-C, or when a CI system cancels the job, the machines are ended first. If the program is killed, the next `once` on this machine removes what is left.",
    positionals: onceArguments,
    options: onceOptions(kind),
    examples: [
      { words: "once ./etcd -- ./test.sh", summary: "Test a platform of your own" },
      {
        words: "once --variant oss --fetch report.xml:results/ ./generate_config.sh -- pytest --junitxml=report.xml",
        summary: "Run tests and fetch their report",
      },
      {
        words: "once --logs-dir logs --junit once.xml --summary example:slurm -- srun hostname",
        summary: "In CI: keep logs after a failure, and show the result",
      },
    ],
    check: async (given, problems, context) => {
      checkFetches(given.fetch ?? [], problems);
      await checkSummary(given.summary, problems, context);
      checkFile(given, problems);
      if (given.from !== undefined) return;
      const { checkInstallation } = await import("../create/check-installation.ts");
      await checkInstallation(kind, { ...given, wait: true }, problems, context);
    },
    run: async (input, context) => {
      const { clusterId, summary: isWanted } = input;
      const { CommandFailed, executeOnce } = await import("./execute-once.ts");
      try {
        const task = async (): Promise<void> => executeOnce(kind, input, context);
        return await summarizingFailure(`Cluster ${clusterId}: failed`, { isWanted, context }, task);
      } catch (error) {
        if (error instanceof CommandFailed) return error.status;
        throw error;
      }
    },
  });
