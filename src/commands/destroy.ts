import { defineCommand } from "../cli/command.ts";
import type { Context } from "../cli/context.ts";
import { flag } from "../cli/options/option.ts";
import { outputFormat, verbose } from "../cli/options/shared-options.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { printableLine } from "../system/printable.ts";
import type { Driver } from "./driver.ts";
import { clusterIdIfGiven, orDefaultClusterId } from "./options.ts";

export const destroyCommand = (driver: Driver) =>
  defineCommand({
    name: "destroy",
    summary: "Remove a cluster, or all of them",
    description:
      "End all machines of a cluster, whatever their state, and remove everything that belongs to the cluster. The folder with its logs is kept. `--all` asks for confirmation first; without a terminal, it needs `--yes`.",
    positionals: {},
    options: {
      clusterId: clusterIdIfGiven,
      all: flag({ flag: "--all", summary: "Remove every cluster that `list` shows" }),
      yes: flag({ flag: "--yes", short: "-y", summary: "Do not ask for confirmation" }),
      ...driver.placeOptions,
      output: outputFormat(["text", "json"]),
      verbose,
    },
    examples: [
      { words: "destroy -c nightly", summary: "Remove the cluster `nightly`" },
      { words: "destroy --all --yes", summary: "Remove every cluster without confirmation" },
    ],
    check: (given, problems, context) => {
      if (!given.all) return;
      if (given.clusterId !== undefined) problems.add("--all and --cluster-id: give one of them");
      if (!given.yes && !canAsk(context)) problems.add("--all: nobody can be asked here, so it needs --yes");
    },
    run: async (input, context) => {
      const backend = await driver.open(input, context, context.signal);
      const { destroyCluster, destroyEach } = await import("../cluster/destroy-clusters.ts");
      if (!input.all) {
        const id = orDefaultClusterId(input.clusterId);
        await destroyCluster(backend, id, context, context.signal);
        return report([id], context);
      }
      const clusters = await backend.list(context.signal);
      if (clusters.length === 0) context.progress.note("No clusters.");
      if (clusters.length > 0 && !input.yes && !(await isMeant(clusters, context))) {
        context.progress.note("Nothing was removed.");
        return 1;
      }
      await destroyEach(backend, clusters, context, context.signal);
      return report(
        clusters.map((cluster) => cluster.id),
        context,
      );
    },
  });

const canAsk = ({ isTerminal }: Context): boolean => isTerminal.stdin && isTerminal.stderr;

async function isMeant(clusters: readonly ClusterRecord[], { stdin, signal }: Context): Promise<boolean> {
  const ids = clusters.map((cluster) => cluster.id).join(", ");
  return stdin.confirm(
    `Remove ${clusters.length === 1 ? "the cluster" : `${clusters.length} clusters`}: ${ids}?`,
    signal,
  );
}

function report(ids: readonly string[], { output }: Context): void {
  output.result({ text: ids.map(printableLine).join("\n"), data: { destroyed: ids } });
}
