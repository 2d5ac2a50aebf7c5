import { messageOf, assertExpected } from "../../errors.ts";
import { runCommand } from "../../references.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { closeMasterConnections } from "../../ssh/session/master-connection.ts";
import { endRemovedCreation, isCreationUnderWay } from "../../store/creation-folder.ts";
import { endText } from "../../system/amounts.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import type { Clock, Work } from "../../system/runtime.ts";
import type { Backend } from "../contract.ts";

/** Clusters on this computer, whose machines have its clock. */

const atOnce = 4;

/** When a cluster ends whose lifetime begins now, in whole seconds; undefined: it has no lifetime. */
export const endAfter = (lifetimeMs: number | undefined, clock: Clock): Date | undefined =>
  lifetimeMs === undefined
    ? undefined
    : new Date(Math.floor((clock.now() + lifetimeMs) / 1000) * 1000);

/** For the description of a plan. */
export const endLine = (
  lifetimeMs: number | undefined,
  clock: Clock,
): readonly [label: string, value: string] => {
  const destroyed = `when you ${runCommand("destroy", "run")}`;
  if (lifetimeMs === undefined) return ["Ends", destroyed];
  const nowMs = clock.now();
  // Not in whole seconds, so that a lifetime of 4 h ends in 4 h, not in 3 h 59 min.
  return ["Ends", `${endText(new Date(nowMs + lifetimeMs), nowMs)}, or ${destroyed}`];
};

/** Like `endLine`, as data. */
export const endFacts = (
  lifetimeMs: number | undefined,
  clock: Clock,
): { readonly expiresAt?: string } => {
  const end = endAfter(lifetimeMs, clock);
  return end === undefined ? {} : { expiresAt: end.toISOString() };
};

export const isOver = (
  { expiresAt }: { readonly expiresAt?: Date | undefined },
  clock: Clock,
): boolean => expiresAt !== undefined && expiresAt.getTime() <= clock.now();

export async function removeExpired(
  { clock, environment, progress, signal }: Work,
  clusters: readonly ClusterRecord[],
  remove: Backend<never>["remove"],
): Promise<void> {
  const expired = clusters.filter((cluster) => isOver(cluster, clock));
  const attempt = async (cluster: ClusterRecord): Promise<void> => {
    const { id, directory, expiresAt } = cluster;
    // Its creation fails because of the end, and removes everything.
    if (expiresAt === undefined || (await isCreationUnderWay(directory))) return;
    const remains = `what is left of cluster "${id}", which ended ${endText(expiresAt, clock.now())}`;
    try {
      await closeMasterConnections(directory, environment);
      await remove(cluster, signal);
      await endRemovedCreation(directory);
      progress.note(`Removed ${remains}.`);
    } catch (error) {
      assertExpected(error, signal);
      progress.warn(`Cannot remove ${remains}: ${messageOf(error)}`);
    }
  };
  await mapConcurrently(expired, atOnce, attempt, signal);
}
