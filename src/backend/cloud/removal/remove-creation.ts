import type { Instance } from "@aws-sdk/client-ec2";
import { ClusterError } from "../../../errors.ts";
import type { Surroundings } from "../../../system/surroundings.ts";
import type { CloudApi } from "../api/api.ts";
import { describeGroups, describeInstances } from "../api/describe.ts";
import { terminate } from "./end-machines.ts";
import { readGroups } from "../records/read-groups.ts";
import { nodeState, readMachines } from "../records/read-machines.ts";
import { removeGroup } from "./remove-group.ts";
import { visibilityLimitMs } from "../api/visibility.ts";

/** How long machines may take to end. It usually takes less than a minute. */
const endingLimitMs = 6 * 60_000;
const groupLimitMs = 60_000;
const longestPauseMs = 5_000;

export interface Remains {
  readonly clusterId: string;
  readonly creationId: string;
  /** Machines that the API was told to terminate. Others whose tags name this creation are found and terminated too. */
  readonly machineIds: readonly string[];
  readonly groupId: string | undefined;
}

/** What could not be removed. */
export interface Leftovers {
  readonly machineIds: readonly string[];
  readonly groupIds: readonly string[];
}

/** Waits until all machines of a creation have ended, then deletes its group. */
export async function removeCreation(
  api: CloudApi,
  remains: Remains,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<Leftovers> {
  const machineIds = await awaitEnd(api, remains, surroundings, signal);
  const { groups } = readGroups(await describeGroups(api, { creationId: remains.creationId }, signal));
  const found = groups.filter((group) => isOf(group, remains)).map(({ id }) => id);
  const groupIds = new Set([remains.groupId, ...found].filter((id) => id !== undefined));
  const left: string[] = [];
  for (const id of groupIds) {
    try {
      const limitMs = machineIds.length === 0 ? groupLimitMs : 0;
      await removeGroup(api, id, { clock: surroundings.clock, limitMs }, signal);
    } catch (error) {
      if (!(error instanceof ClusterError) || error.transient) throw error;
      surroundings.progress.detail(1, `Security group ${id} could not be deleted: ${error.message}`);
      left.push(id);
    }
  }
  return { machineIds, groupIds: left };
}

const isOf = (thing: Pick<Remains, "clusterId" | "creationId">, remains: Remains): boolean =>
  thing.clusterId === remains.clusterId && thing.creationId === remains.creationId;

/** Polls until every machine of the creation is gone, including those not seen yet. Returns the machines that remain when the limit passes. */
async function awaitEnd(
  api: CloudApi,
  remains: Remains,
  { clock, progress }: Surroundings,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const startMs = clock.now();
  const told = new Set(remains.machineIds);
  for (let pauseMs = 500; ; pauseMs = Math.min(pauseMs * 1.3, longestPauseMs)) {
    const instances = await describeRemains(api, { remains, told }, signal);
    const { machines } = readMachines(instances);
    const own = machines.filter((machine) => isOf(machine, remains) && machine.state !== "ended").map(({ id }) => id);
    const strays = own.filter((id) => !told.has(id));
    if (strays.length > 0) await terminate(api, strays, clock, signal);
    for (const id of strays) told.add(id);
    const seen = new Map(instances.map((instance) => [instance.InstanceId ?? "", nodeState(instance)]));
    const present = [...told].filter((id) => seen.has(id) && seen.get(id) !== "ended");
    const unseen = clock.now() - startMs < visibilityLimitMs ? [...told].filter((id) => !seen.has(id)) : [];
    const left = [...present, ...unseen];
    if (left.length === 0 || clock.now() - startMs > endingLimitMs) {
      progress.waiting("");
      return left;
    }
    progress.waiting(`waiting for ${left.length} of ${told.size} machines to end`);
    await clock.sleep(pauseMs, signal);
  }
}

/** Returns the machines with the creation's tag, plus those that were told to end but have a changed tag or aren't visible yet. */
async function describeRemains(
  api: CloudApi,
  { remains, told }: { readonly remains: Remains; readonly told: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<readonly Instance[]> {
  const tagged = await describeInstances(api, { creationId: remains.creationId }, signal);
  const seen = new Set(tagged.map((instance) => instance.InstanceId));
  const ids = [...told].filter((id) => !seen.has(id));
  return ids.length === 0 ? tagged : [...tagged, ...(await describeInstances(api, { ids }, signal))];
}
