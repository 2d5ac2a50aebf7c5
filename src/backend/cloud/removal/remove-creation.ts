import type { Instance } from "@aws-sdk/client-ec2";
import { ClusterError, messageOf } from "../../../errors.ts";
import { poll } from "../../../system/poll.ts";
import type { Clock, Runtime } from "../../../system/runtime.ts";
import type { CloudApi } from "../api/api.ts";
import { describeGroups, describeInstances } from "../api/describe.ts";
import { terminate } from "./end-machines.ts";
import { readGroups } from "../records/read-groups.ts";
import { type Machine, nodeState, readMachines } from "../records/read-machines.ts";
import { retry } from "../../../system/retry.ts";
import { isFailure } from "../api/api-errors.ts";
import { ruleOf, waits } from "../../../system/waits.ts";

export interface Remains {
  readonly clusterId: string;
  readonly creationId: string;
  /** Machines that the API was told to terminate. Others in the cluster's group whose tags name this creation are found and terminated too. */
  readonly machineIds: readonly string[];
  readonly groupId: string | undefined;
  /** Machines that this computer launched for the creation, whatever their tags say now. */
  readonly ownIds?: readonly string[];
  /** Whether a machine that was found by its tags may be terminated. Default: each one. */
  readonly mayEnd?: (machine: Machine) => boolean;
}

/** What could not be removed. */
export interface Leftovers {
  readonly machineIds: readonly string[];
  readonly groupIds: readonly string[];
}

/** Waits until all machines of a creation have ended, then deletes its group. Without the group, a launch request that is still under way fails. */
export async function removeCreation(
  api: CloudApi,
  remains: Remains,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Leftovers> {
  let machineIds = await awaitEnd(api, remains, runtime, signal);
  // A group that is in use belongs to machines that the API didn't show yet.
  const whileInUse = async (inner: AbortSignal): Promise<void> => {
    machineIds = await awaitEnd(api, remains, runtime, inner);
  };
  const { groups } = readGroups(await describeGroups(api, { creationId: remains.creationId }, signal));
  const found = groups.filter((group) => isOf(group, remains)).map(({ id }) => id);
  const groupIds = new Set([remains.groupId, ...found].filter((id) => id !== undefined));
  const left: string[] = [];
  for (const id of groupIds) {
    try {
      const limitMs = machineIds.length === 0 ? waits.visibility.limitMs : 0;
      await removeGroup(api, id, { clock: runtime.clock, limitMs, whileInUse }, signal);
    } catch (error) {
      if (!(error instanceof ClusterError) || error.transient) throw error;
      runtime.progress.detail(1, `Cannot delete security group ${id}: ${messageOf(error)}`);
      left.push(id);
    }
  }
  return { machineIds, groupIds: left };
}

const isOf = (thing: Pick<Remains, "clusterId" | "creationId">, remains: Remains): boolean =>
  thing.clusterId === remains.clusterId && thing.creationId === remains.creationId;

/**
 * Anyone who may tag can put a creation's tags on any machine, so tags alone are not enough to end it. On EC2 every machine has a group; some other
 * implementations don't describe any.
 */
function isInGroup({ isInItsGroup, groupIds }: Machine, { groupId }: Remains): boolean {
  return isInItsGroup || groupIds.length === 0 || (groupId !== undefined && groupIds.includes(groupId));
}

/** Polls until every machine of the creation is gone, including those not seen yet. Returns the machines that remain when the limit passes. */
async function awaitEnd(
  api: CloudApi,
  remains: Remains,
  { clock, progress }: Runtime,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const startMs = clock.now();
  const { ownIds = [], mayEnd = () => true } = remains;
  const told = new Set(remains.machineIds);
  let left: readonly string[] = [];
  const look = async (inner: AbortSignal): Promise<"ended" | undefined> => {
    const instances = await describeRemains(api, { remains, told }, inner);
    const { machines, rivals } = readMachines(instances);
    const seen = new Map(instances.map((instance) => [instance.InstanceId ?? "", nodeState(instance)]));
    const tagged = [...machines, ...rivals].filter((machine) => isOf(machine, remains) && isInGroup(machine, remains));
    const found = new Set([...ownIds, ...tagged.filter(mayEnd).map(({ id }) => id)]);
    const strays = [...found].filter((id) => seen.has(id) && seen.get(id) !== "ended" && !told.has(id));
    await terminate(api, strays, clock, inner);
    for (const id of strays) told.add(id);
    const present = [...told].filter((id) => seen.has(id) && seen.get(id) !== "ended");
    const unseen = clock.now() - startMs < waits.visibility.limitMs ? [...told].filter((id) => !seen.has(id)) : [];
    left = [...present, ...unseen];
    return left.length === 0 ? "ended" : undefined;
  };
  const waitingFor = (): string => `${left.length} of ${told.size} machines to terminate`;
  await poll(look, { ...ruleOf(waits.ending, clock), shows: { progress, waitingFor } }, signal);
  return left;
}

/** Returns the machines with the creation's tag, plus those that are known by their id but have a changed tag or aren't visible yet. */
async function describeRemains(
  api: CloudApi,
  { remains, told }: { readonly remains: Remains; readonly told: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<readonly Instance[]> {
  const tagged = await describeInstances(api, { creationId: remains.creationId }, signal);
  const seen = new Set(tagged.map((instance) => instance.InstanceId));
  const ids = [...new Set([...told, ...(remains.ownIds ?? [])])].filter((id) => !seen.has(id));
  return ids.length === 0 ? tagged : [...tagged, ...(await describeInstances(api, { ids }, signal))];
}

interface GroupRemoval {
  readonly clock: Clock;
  readonly limitMs: number;
  /** Called before each new try. */
  readonly whileInUse?: (signal: AbortSignal) => Promise<void>;
}

/** Deletes a security group. A missing group counts as deleted; a group that ending machines still use is retried within the limit. */
export async function removeGroup(
  api: CloudApi,
  groupId: string,
  { clock, limitMs, whileInUse }: GroupRemoval,
  signal: AbortSignal,
): Promise<void> {
  const rule = {
    ...ruleOf({ ...waits.groupInUse, limitMs }, clock),
    tolerates: (error: ClusterError) => isFailure(error, "group-in-use"),
  };
  let tries = 0;
  const remove = async (inner: AbortSignal): Promise<void> => {
    if (tries > 0) await whileInUse?.(inner);
    tries += 1;
    await api.call("DeleteSecurityGroup", { GroupId: groupId }, inner);
  };
  try {
    await retry(remove, rule, signal);
  } catch (error) {
    if (!isFailure(error, "group-missing")) throw error;
  }
}

/** Says what could not be removed and how it goes away by itself; `undefined` if nothing is left. */
export function leftoversText(left: Leftovers, expiresAt: Date | undefined): string | undefined {
  const machines = left.machineIds.length === 0 ? [] : [`machines ${left.machineIds.join(", ")}`];
  const groups = left.groupIds.map((id) => `security group ${id}`);
  const things = [...machines, ...groups];
  if (things.length === 0) return undefined;
  const end = expiresAt === undefined ? "at their deadline" : `at ${expiresAt.toISOString()}`;
  return `Left behind: ${things.join("; ")}. Machines terminate automatically ${end}; the next create in the region removes the rest.`;
}
