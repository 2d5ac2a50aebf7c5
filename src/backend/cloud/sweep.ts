import type { Instance, SecurityGroup } from "@aws-sdk/client-ec2";
import type { Surroundings } from "../../system/surroundings.ts";
import { ClusterError } from "../../errors.ts";
import type { CloudApi } from "./api.ts";
import { describeGroups, describeInstances } from "./describe.ts";
import { terminate } from "./end-machines.ts";
import { nodeState, readExpiry } from "./records.ts";
import { removeCreation } from "./remove-creation.ts";
import { removeGroup } from "./remove-group.ts";
import { readTags } from "./tags.ts";

/** What of ours is in the region, as the API tells it now. */
export interface Inventory {
  readonly instances: readonly Instance[];
  readonly groups: readonly SecurityGroup[];
}

/** Machines that have ended are among them for as long as the API tells of them. */
export async function takeInventory(api: CloudApi, signal: AbortSignal): Promise<Inventory> {
  const [instances, groups] = await Promise.all([
    describeInstances(api, "all", signal),
    describeGroups(api, "all", signal),
  ]);
  return { instances, groups };
}

/** What ended clusters left: machines past their deadline, and groups past theirs that no machine uses. By id, never by name. */
export function findLeftovers(inventory: Inventory, nowMs: number): { machineIds: string[]; groupIds: string[] } {
  const isExpired = (thing: Instance | SecurityGroup): boolean =>
    (readExpiry(readTags(thing.Tags))?.getTime() ?? Infinity) < nowMs;
  const present = inventory.instances.filter((instance) => nodeState(instance) !== "ended");
  const used = new Set(present.flatMap((instance) => instance.SecurityGroups ?? []).map((group) => group.GroupId));
  const late = present.filter((instance) => isExpired(instance) && instance.State?.Name !== "shutting-down");
  const idle = inventory.groups.filter((group) => isExpired(group) && !used.has(group.GroupId));
  return {
    machineIds: late.map((instance) => instance.InstanceId ?? ""),
    groupIds: idle.map((group) => group.GroupId ?? ""),
  };
}

/**
 * Removes what ended clusters left in the region. Best effort: what fails is left to the next create. Nothing of a cluster under way is
 * touched, since its deadline lies ahead.
 */
export async function sweep(
  api: CloudApi,
  inventory: Inventory,
  { clusterId, surroundings }: { readonly clusterId: string; readonly surroundings: Surroundings },
  signal: AbortSignal,
): Promise<void> {
  const { clock, progress } = surroundings;
  const { machineIds, groupIds } = findLeftovers(inventory, api.now());
  const inTheWay = expiredCreations(inventory, clusterId, api.now());
  const attempt = async (what: string, task: () => Promise<void>): Promise<void> => {
    try {
      await task();
      progress.detail(1, `Removed what an ended cluster had left: ${what}`);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ClusterError)) throw error;
      progress.detail(1, `An ended cluster's ${what} could not be removed: ${error.message}`);
    }
  };
  await Promise.all([
    ...(machineIds.length === 0
      ? []
      : [attempt(machineIds.join(", "), () => terminate(api, machineIds, clock, signal))]),
    ...groupIds.map((id) => attempt(id, () => removeGroup(api, id, { clock, limitMs: 0 }, signal))),
    ...inTheWay.map((creationId) =>
      attempt(`creation ${creationId}`, async () => {
        await removeCreation(api, { creationId, machineIds: [], groupId: undefined }, surroundings, signal);
      }),
    ),
  ]);
}

/** Ended creations of the very id that is wanted, whose machines are still about to end: their group, and so the name, must be waited for. */
function expiredCreations({ instances }: Inventory, clusterId: string, nowMs: number): readonly string[] {
  const creations = instances
    .filter((instance) => nodeState(instance) !== "ended")
    .map((instance) => readTags(instance.Tags))
    .filter((tags) => tags.clusterId === clusterId && (readExpiry(tags)?.getTime() ?? Infinity) < nowMs)
    .map((tags) => tags.creationId);
  return [...new Set(creations.filter((creationId) => creationId !== undefined))];
}
