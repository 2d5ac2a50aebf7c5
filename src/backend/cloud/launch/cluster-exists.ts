import { ClusterError } from "../../../errors.ts";
import type { MachineReading } from "../records/read-machines.ts";

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
  for (const { state, isShuttingDown, expiresAt, ...machine } of machines) {
    if (machine.clusterId !== clusterId || leaving.includes(machine.creationId)) continue;
    if (state === "ended" || isShuttingDown || (expiresAt !== undefined && expiresAt.getTime() < nowMs)) continue;
    throw clusterExists({ clusterId, region, expiresAt, nowMs });
  }
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
