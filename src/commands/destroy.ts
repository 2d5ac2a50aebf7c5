import type { Backend, BackendKind } from "../backend/contract.ts";
import { defineCommand, type Context } from "../cli/command.ts";
import { flag } from "../cli/options/option.ts";
import { outputFormat, verbose } from "../cli/options/value-types.ts";
import { ClusterError } from "../errors.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { plainLine } from "../system/printable.ts";
import { placeOptions } from "./backend-options.ts";
import { clusterIdIfGiven, orDefaultClusterId } from "./options.ts";

export const destroyCommand = (kind: BackendKind) =>
  defineCommand({
    name: "destroy",
    summary: "Remove a cluster, or all of them",
    description:
      "End all machines of a cluster, whatever their state, and remove everything that belongs to the cluster. The folder with its logs is kept. `--all`, and a cluster with snapshots, ask for confirmation first; without a terminal, they need `--yes`.",
    positionals: {},
    options: {
      clusterId: clusterIdIfGiven,
      all: flag({ flag: "--all", summary: "Remove every cluster that `list` shows" }),
      yes: flag({ flag: "--yes", short: "-y", summary: "Do not ask for confirmation" }),
      ...placeOptions(kind),
      output: outputFormat(["text", "json"]),
      verbose,
    },
    examples: [
      { words: "destroy -c nightly", summary: "Remove the cluster `nightly`" },
      { words: "destroy --all --yes", summary: "Remove every cluster without confirmation" },
    ],
    check: (given, problems, context) => {
      if (!given.all) return;
      if (given.clusterId !== undefined) problems.add("--all and --cluster-id: cannot be combined");
      if (!given.yes && !canAsk(context))
        problems.add("--all: there is no terminal on which to confirm, so --yes is required");
    },
    run: async (input, context) => {
      const backend = await kind.open(input, context, context.signal);
      const { destroyCluster, destroyEach } = await import("../cluster/destroy-clusters.ts");
      if (!input.all) {
        const id = orDefaultClusterId(input.clusterId);
        if (!input.yes && !(await areSnapshotsMeant(backend, id, context))) return refused(context);
        await destroyCluster(backend, id, context, context.signal);
        return report([id], context);
      }
      const clusters = await backend.list(context.signal);
      if (clusters.length === 0) context.progress.note("No clusters.");
      if (clusters.length > 0 && !input.yes && !(await areMeant(backend, clusters, context))) return refused(context);
      await destroyEach(backend, clusters, context, context.signal);
      return report(
        clusters.map((cluster) => cluster.id),
        context,
      );
    },
  });

const canAsk = ({ isTerminal }: Context): boolean => isTerminal.stdin && isTerminal.stderr;

function refused({ progress }: Context): number {
  progress.note("Nothing was removed.");
  return 1;
}

/** Asks only if the cluster has snapshots. Throws `bad-usage` if nobody can be asked. */
async function areSnapshotsMeant(backend: Backend<unknown>, id: string, context: Context): Promise<boolean> {
  const { stdin, signal } = context;
  const { findCluster } = await import("../cluster/find-cluster.ts");
  const names = await snapshotNames(backend, [await findCluster(backend, id, signal)], signal);
  if (names.length === 0) return true;
  if (canAsk(context)) return stdin.confirm(`Remove cluster ${id} and its snapshots: ${names.join(", ")}?`, signal);
  throw new ClusterError("bad-usage", `Cluster "${id}" has snapshots, which would be lost: ${names.join(", ")}.`, {
    hint: "Nobody can be asked here, so it needs --yes.",
    facts: { cluster: id, snapshots: names },
  });
}

async function areMeant(
  backend: Backend<unknown>,
  clusters: readonly ClusterRecord[],
  { stdin, signal }: Context,
): Promise<boolean> {
  const ids = clusters.map((cluster) => cluster.id).join(", ");
  const names = await snapshotNames(backend, clusters, signal);
  const also = names.length === 0 ? "" : `, and their snapshots: ${names.join(", ")}`;
  return stdin.confirm(
    `Remove ${clusters.length === 1 ? "the cluster" : `${clusters.length} clusters`}: ${ids}${also}?`,
    signal,
  );
}

async function snapshotNames(
  { snapshots }: Backend<unknown>,
  clusters: readonly ClusterRecord[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found = await Promise.all(clusters.map(async (cluster) => snapshots?.list(cluster, signal) ?? []));
  return found.flat().map(({ name }) => name);
}

function report(ids: readonly string[], { output }: Context): void {
  output.result({ text: ids.map((id) => plainLine(id)).join("\n"), data: { destroyed: ids } });
}
