import { messageOf, assertExpected } from "../../errors.ts";
import type { Work } from "../../system/runtime.ts";
import { type ForeignResource, foreignResourceText } from "../shared/foreign-resource.ts";
import { type CloudApi, describeGroups, describeInstances } from "./api/api.ts";
import { isPastDeadline } from "./lifetime.ts";
import { type Group, type Machine, readGroups, readMachines } from "./read-machines.ts";
import { removeCreation, removeGroup, terminate } from "./removal.ts";

/** Everything of ours in the region, as the API reports it now. */
export interface Inventory {
  readonly machines: readonly Machine[];
  readonly groups: readonly Group[];
  /** Machines and groups that only look like ours. */
  readonly foreignResources: readonly ForeignResource[];
}

/**
 * Includes ended machines, as long as the API reports them, and rivals, so that an expired machine
 * with a running node's tags can't hide that node.
 */
export async function takeInventory(api: CloudApi, signal: AbortSignal): Promise<Inventory> {
  const [instances, groups] = await Promise.all([
    describeInstances(api, "all", signal).then((described) => readMachines(described)),
    describeGroups(api, "all", signal).then(readGroups),
  ]);
  return {
    machines: [...instances.machines, ...instances.rivals],
    groups: groups.groups,
    foreignResources: [...instances.foreignResources, ...groups.foreignResources],
  };
}

type Resources = Pick<Inventory, "machines" | "groups">;

/**
 * Finds what expired clusters have left: machines past their deadline, and unused groups past
 * theirs. Tags alone must not be enough to end a machine, so it must also have run for two hours
 * and be in its cluster's security group.
 */
export function findLeftovers({ machines, groups }: Resources, nowMs: number): Resources {
  const present = machines.filter((machine) => machine.state !== "ended");
  const used = new Set(present.flatMap(({ groupIds }) => groupIds));
  return {
    machines: present.filter(
      (machine) =>
        isPastDeadline(machine, nowMs) && !machine.isShuttingDown && machine.isInItsGroup,
    ),
    groups: groups.filter(
      ({ id, expiresAt }) => (expiresAt?.getTime() ?? Infinity) < nowMs && !used.has(id),
    ),
  };
}

/** Removes what expired clusters have left in the region. Best effort: leaves failures to the next create. */
export async function removeExpired(
  work: Work,
  api: CloudApi,
  inventory: Inventory,
  clusterId: string,
): Promise<void> {
  const { clock, progress } = work;
  for (const foreignResource of inventory.foreignResources)
    progress.detail(1, foreignResourceText(foreignResource));
  const left = findLeftovers(inventory, api.now());
  const machineIds = left.machines.map(({ id }) => id);
  const inTheWay = expiredCreations(inventory, clusterId, api.now());
  const attempt = async (what: string, task: () => Promise<void>): Promise<void> => {
    try {
      await task();
      progress.detail(1, `Removed the remains of an expired cluster: ${what}`);
    } catch (error) {
      assertExpected(error, work.signal);
      progress.detail(
        1,
        `Cannot remove the remains of an expired cluster, ${what}: ${messageOf(error)}`,
      );
    }
  };
  await Promise.all([
    ...(machineIds.length === 0
      ? []
      : [attempt(machineIds.join(", "), () => terminate(api, machineIds, clock, work.signal))]),
    ...left.groups.map(({ id }) =>
      attempt(id, () => removeGroup(api, id, { clock, limitMs: 0 }, work.signal)),
    ),
    ...inTheWay.map((creationId) =>
      attempt(`creation ${creationId}`, async () => {
        const mayEnd = (machine: Machine): boolean => isPastDeadline(machine, api.now());
        const remains = { clusterId, creationId, machineIds: [], groupId: undefined, mayEnd };
        await removeCreation(work, api, remains);
      }),
    ),
  ]);
}

/**
 * Finds expired creations of this id whose machines are still ending. The create must wait until
 * the name of their group is free.
 */
function expiredCreations(
  { machines }: Inventory,
  clusterId: string,
  nowMs: number,
): readonly string[] {
  const present = machines.filter(
    (machine) =>
      machine.state !== "ended" && machine.clusterId === clusterId && machine.isInItsGroup,
  );
  const byCreation = Map.groupBy(present, ({ creationId }) => creationId);
  return [...byCreation]
    .filter(([, members]) => members.every((machine) => isPastDeadline(machine, nowMs)))
    .map(([creationId]) => creationId);
}
