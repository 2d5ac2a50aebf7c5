import { nodeState, readExpiry } from "./records.ts";
import { clusterExists } from "./cluster-exists.ts";
import type { Inventory } from "./sweep.ts";
import { readTags } from "./tags.ts";

/**
 * Throws `cluster-exists` where machines of this cluster id are there. Those that are ending don't count, nor those past their deadline, which
 * the sweep ends; `leaving` are creations that are about to be removed.
 */
export function assertIdIsFree(
  inventory: Pick<Inventory, "instances">,
  wanted: {
    readonly clusterId: string;
    readonly region: string;
    readonly nowMs: number;
    readonly leaving: readonly string[];
  },
): void {
  const { clusterId, region, nowMs, leaving } = wanted;
  for (const instance of inventory.instances) {
    const tags = readTags(instance.Tags);
    if (tags.clusterId !== clusterId || leaving.includes(tags.creationId ?? "")) continue;
    const state = nodeState(instance);
    const isGoing = state === "ended" || instance.State?.Name === "shutting-down";
    const expiresAt = readExpiry(tags);
    if (isGoing || (expiresAt !== undefined && expiresAt.getTime() < nowMs)) continue;
    throw clusterExists({ clusterId, region, expiresAt, nowMs });
  }
}
