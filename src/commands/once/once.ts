import { defineCommand } from "../../cli/command.ts";
import type { Context } from "../../cli/command.ts";
import type { BackendKind } from "../../backend/contract.ts";
import { checkFile } from "../create/create-options.ts";
import { checkSession } from "../run/run.ts";
import { checkSummary, summarizingFailure } from "../summary/step-summary.ts";
import {
  type OnceInput,
  checkSaving,
  checkShards,
  onceArguments,
  onceOptions,
} from "./once-options.ts";

export const onceCommand = (kind: BackendKind) =>
  defineCommand({
    name: "once",
    summary: "Run a command on a cluster that exists only for it",
    description:
      "Create a cluster, wait until the platform is ready, run the command on a node, or on this computer with --local, fetch files, and remove the cluster, whatever happens. The options are those of `create`, `wait` and `run`, and the command line follows the rules of `run`. The exit code is the command's; if this program fails before it connects to run it, the exit code is that of `create` and `wait`, and later 255.\n\nAll nodes are watched while the command runs, as `run --watch` does: what goes wrong on them is a failure as well, unless --ignore names it.\n\nIf anything fails, even the command, the logs of all nodes are saved first. On Ctrl-C, or when a CI system cancels the job, the machines are ended first. If the program is killed, the next `once` on this computer removes what is left.",
    positionals: onceArguments,
    options: onceOptions(kind),
    examples: [
      { words: "once ./etcd -- ./test.sh", summary: "Test a platform of your own" },
      {
        words: "once --fetch report.xml:results/ ./etcd -- ./test.sh",
        summary: "Run tests and fetch their report",
      },
      {
        words: "once --local --masters 5 ./etcd -- pytest failover",
        summary: "Run tests on this computer, which may stop nodes",
      },
      {
        words: "once --chaos seed=7,every=1m example:etcd -- ./t.sh",
        summary: "Run a test while faults begin and heal",
      },
      {
        words: "once --logs-dir logs --junit once.xml ./etcd -- ./test.sh",
        summary: "In CI: keep logs after a failure, and show the result",
      },
    ],
    check: async (given, problems, context) => {
      checkSession({ ...given, watch: true }, problems);
      await checkSummary(given.summary, problems, context);
      checkFile(given, problems);
      checkSaving(kind, given, problems);
      if (given.shrink !== undefined)
        (await import("./shrink-chaos.ts")).checkShrink(given, problems);
      await checkShards(given, problems);
      if (given.from !== undefined) return;
      const { checkInstallation } = await import("../create/check-installation.ts");
      await checkInstallation(kind, { ...given, wait: true }, problems, context);
    },
    run: async (input, context) => runOnce(kind, input, context),
  });

async function runOnce(
  kind: BackendKind,
  input: OnceInput,
  context: Context,
): Promise<number | void> {
  const { clusterId, summary: isWanted, shards, chaos, shrink } = input;
  if (shards !== undefined) {
    const { executeShards } = await import("./execute-shards.ts");
    return await executeShards(kind, { ...input, shards }, context);
  }
  const { CommandFailed, executeOnce } = await import("./execute-once.ts");
  const { chaosTitle } = await import("./with-chaos.ts");
  try {
    const task = async (): Promise<void> => {
      if (chaos === undefined || shrink === undefined)
        return await executeOnce(kind, input, context);
      const { shrinkChaos } = await import("./shrink-chaos.ts");
      await shrinkChaos(kind, { ...input, chaos, shrink }, context);
    };
    return await summarizingFailure(
      `Cluster ${clusterId}: failed${chaosTitle(chaos)}`,
      { isWanted, context },
      task,
    );
  } catch (error) {
    if (error instanceof CommandFailed) return error.status;
    throw error;
  }
}
