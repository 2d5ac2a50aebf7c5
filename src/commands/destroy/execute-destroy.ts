import { numbered } from "../../system/amounts.ts";
import type { Backend, BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { destroyCluster, destroyEach } from "../../cluster/destroy-clusters.ts";
import { findCluster } from "../../cluster/find-cluster.ts";
import { ClusterError, hasErrorId } from "../../errors.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { plainLine } from "../../system/printable.ts";
import type { JsonResults } from "../json-results.ts";
import { canAsk, orDefaultClusterId } from "../options.ts";

/** Resolves with the exit code if it isn't 0. */
export async function executeDestroy(
  kind: BackendKind,
  input: Readonly<Record<string, unknown>> & {
    readonly clusterId: string | undefined;
    readonly all: boolean;
    readonly ifExists: boolean;
    readonly yes: boolean;
  },
  context: Context,
): Promise<number | void> {
  const backend = await kind.open(context, input);
  if (!input.all) {
    const id = orDefaultClusterId(input.clusterId);
    try {
      if (!input.yes && !(await areSnapshotsMeant(backend, id, context))) return refused(context);
      await destroyCluster(context, backend, id);
      return report([id], context);
    } catch (error) {
      if (!input.ifExists || !isNowhere(error)) throw error;
      context.progress.note(`There is no cluster "${id}", so nothing was removed.`);
      return report([], context);
    }
  }
  const clusters = await backend.list(context.signal);
  if (clusters.length === 0) context.progress.note("No clusters.");
  if (clusters.length > 0 && !input.yes && !(await areMeant(backend, clusters, context)))
    return refused(context);
  await destroyEach(context, backend, clusters);
  return report(
    clusters.map((cluster) => cluster.id),
    context,
  );
}

/** Whether there is certainly no such cluster, not even in another scope. */
const isNowhere = (error: unknown): boolean =>
  hasErrorId(error, "cluster-not-found") &&
  isEmpty(error.facts["elsewhere"]) &&
  isEmpty(error.facts["silent"]);
const isEmpty = (list: unknown): boolean => !Array.isArray(list) || list.length === 0;

function refused({ progress }: Context): number {
  progress.note("Nothing was removed.");
  return 1;
}

/** Asks for confirmation if the cluster has snapshots. Throws `bad-usage` if there is no terminal. */
async function areSnapshotsMeant(
  backend: Backend<unknown>,
  id: string,
  context: Context,
): Promise<boolean> {
  const { stdin, signal } = context;
  const names = await snapshotNames(backend, [await findCluster(backend, id, signal)], signal);
  if (names.length === 0) return true;
  if (canAsk(context))
    return stdin.confirm(`Remove cluster ${id} and its snapshots: ${names.join(", ")}?`, signal);
  throw new ClusterError(
    "bad-usage",
    `Cluster "${id}" has snapshots, which would be lost: ${names.join(", ")}.`,
    {
      hint: "There is no terminal on which to confirm: pass --yes.",
      facts: { cluster: id, snapshots: names },
    },
  );
}

async function areMeant(
  backend: Backend<unknown>,
  clusters: readonly ClusterRecord[],
  { stdin, signal }: Context,
): Promise<boolean> {
  const ids = clusters.map((cluster) => cluster.id).join(", ");
  const names = await snapshotNames(backend, clusters, signal);
  const also = names.length === 0 ? "" : `, and their snapshots: ${names.join(", ")}`;
  return stdin.confirm(`Remove ${numbered(clusters.length, "cluster")}: ${ids}${also}?`, signal);
}

async function snapshotNames(
  { local }: Backend<unknown>,
  clusters: readonly ClusterRecord[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found = await Promise.all(
    clusters.map(async (cluster) => local?.snapshots.list(cluster, signal) ?? []),
  );
  return found.flat().map(({ name }) => name);
}

function report(ids: readonly string[], { output }: Context): void {
  output.result({
    text: ids.map((id) => plainLine(id)).join("\n"),
    data: { destroyed: ids } satisfies JsonResults["destroy"],
  });
}
