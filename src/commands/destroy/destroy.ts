import type { BackendKind } from "../../backend/contract.ts";
import { defineCommand } from "../../cli/command.ts";
import { flag } from "../../cli/options/option.ts";
import { outputFormat, verbose } from "../../cli/options/value-types.ts";
import { variable } from "../../system/variable.ts";
import { scopeOptions } from "../backend-options.ts";
import { canAsk, clusterIdIfGiven } from "../options.ts";

export const destroyCommand = (kind: BackendKind) =>
  defineCommand({
    name: "destroy",
    summary: "Remove a cluster, or all of them",
    description:
      "End all machines of a cluster, whatever their state, and remove everything that belongs to the cluster. The folder with its logs is kept. `--all`, and a cluster with snapshots, ask for confirmation first; without a terminal, they need `--yes`.",
    options: {
      clusterId: clusterIdIfGiven,
      all: flag({ flag: "--all", summary: "Remove every cluster that `list` shows" }),
      ifExists: flag({
        flag: "--if-exists",
        summary: "Succeed if there is no such cluster, as in a CI step that always runs",
      }),
      yes: flag({ flag: "--yes", short: "-y", summary: "Do not ask for confirmation" }),
      ...scopeOptions(kind),
      output: outputFormat(["text", "json"]),
      verbose,
    },
    examples: [
      { words: "destroy -c nightly", summary: "Remove the cluster `nightly`" },
      { words: "destroy --if-exists", summary: "Remove the cluster `default`, if there is one" },
      { words: "destroy --all --yes", summary: "Remove every cluster without confirmation" },
    ],
    check: (given, problems, context) => {
      if (!given.all) return;
      const inherited = variable(context.environment, "CLUSTER_ID");
      if (![undefined, inherited].includes(given.clusterId))
        problems.add("--all and --cluster-id: cannot be combined");
      if (!given.yes && !canAsk(context))
        problems.add("--all: there is no terminal on which to confirm, so --yes is required");
    },
    run: async (input, context) => {
      const { executeDestroy } = await import("./execute-destroy.ts");
      return executeDestroy(kind, input, context);
    },
  });
