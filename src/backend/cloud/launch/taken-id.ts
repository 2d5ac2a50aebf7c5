import { clusterExists } from "./cluster-exists.ts";
import type { MachineReading } from "../records/read-machines.ts";

/**
 * Throws `cluster-exists` where machines of this cluster id are there. Those that are ending don't count, nor those past their deadline, which
 * the sweep ends; `leaving` are creations that are about to be removed.
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
