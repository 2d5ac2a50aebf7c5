import { ClusterError } from "../../../errors.ts";
import type { Machine, MachineReading } from "../records/read-machines.ts";
import { isPastDeadline } from "./lifetime.ts";

/**
 * Throws `cluster-exists` if machines of this cluster id exist. Ignores machines that are ending, and those past their
 * deadline, which `removeExpired` terminates; `leaving` are creations that are about to be removed.
 */
export function assertIdIsFree(
  { machines }: Pick<MachineReading, "machines">,
  wanted: {
    readonly clusterId: string;
    readonly region: string;
    readonly nowMs: number;
    readonly leaving: readonly string[];
  },
): void {
  const { clusterId, region, nowMs, leaving } = wanted;
  for (const machine of machines) {
    if (machine.clusterId !== clusterId || leaving.includes(machine.creationId)) continue;
    if (machine.state === "ended" || machine.isShuttingDown || isOver(machine, nowMs)) continue;
    throw clusterExists({ clusterId, region, expiresAt: machine.expiresAt, nowMs });
  }
}

/** Of a machine outside its cluster's group, which nothing terminates, the tag alone counts: the group's name remains the lock. */
function isOver(machine: Machine, nowMs: number): boolean {
  if (machine.isInItsGroup) return isPastDeadline(machine, nowMs);
  return machine.expiresAt !== undefined && machine.expiresAt.getTime() < nowMs;
}

/** Returns the error for an id that is taken. It says when the present cluster ends. */
export function clusterExists(present: {
  readonly clusterId: string;
  readonly region: string;
  readonly expiresAt: Date | undefined;
  readonly nowMs: number;
  /** The security group that holds the name, if nothing else is known. */
  readonly group?: string | undefined;
}): ClusterError {
  const { clusterId, region, expiresAt, group } = present;
  const end =
    expiresAt === undefined ? "" : ` It terminates at ${expiresAt.toISOString()}${timeLeft(expiresAt, present.nowMs)}.`;
  const held = group === undefined ? "" : ` (security group ${group})`;
  const message = `A cluster "${clusterId}" already exists or is being created in region ${region}${held}.${end}`;
  return new ClusterError("cluster-exists", message, {
    hint: "Choose another `clusterId`, or wait until that cluster has terminated.",
    facts: { cluster: clusterId, region, expiresAt: expiresAt?.toISOString(), group },
  });
}

function timeLeft(end: Date, nowMs: number): string {
  const minutes = Math.ceil((end.getTime() - nowMs) / 60_000);
  return minutes > 0 ? `, in ${minutes} min` : "";
}
