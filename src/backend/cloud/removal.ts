import { endText, numbered } from "../../system/amounts.ts";
import type { Instance } from "@aws-sdk/client-ec2";
import { ClusterError, messageOf } from "../../errors.ts";
import type { ClusterName } from "../../model/cluster-record.ts";
import { parseMoment } from "../../model/parse-values.ts";
import { isAbandonedCreation } from "../../store/creation-folder.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import { poll, retry } from "../../system/retry.ts";
import { type Clock, type Runtime, type Work, passedMs } from "../../system/runtime.ts";
import { watchdog } from "../../system/time-limit.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import { isFailure, wasRefused } from "./api/api-errors.ts";
import {
  type CloudApi,
  chunksOf,
  describeGroups,
  describeInstances,
  untilVisible,
} from "./api/api.ts";
import { lifetimeMs } from "./lifetime.ts";
import { type SavedLaunch, readLaunches, readOwnLaunches } from "./launch/saved-requests.ts";
import { type Machine, nodeState, readGroups, readMachines } from "./read-machines.ts";
import { readTags } from "./tags.ts";

interface Remains {
  readonly clusterId: string;
  readonly creationId: string;
  /**
   * Machines whose termination was requested. Others in the cluster's group with this creation's
   * tags are terminated too.
   */
  readonly machineIds: readonly string[];
  readonly groupId: string | undefined;
  /** Machines that this computer launched for the creation, whatever their tags say now. */
  readonly ownIds?: readonly string[];
  /** Whether a machine that was found by its tags may be terminated. Default: each one. */
  readonly mayEnd?: (machine: Machine) => boolean;
}

interface Leftovers {
  readonly machineIds: readonly string[];
  readonly groupIds: readonly string[];
}

/**
 * Waits until all machines have ended, then deletes their group. Without it, a launch request that
 * is still under way fails.
 */
export async function removeCreation(
  work: Work,
  api: CloudApi,
  remains: Remains,
): Promise<Leftovers> {
  let machineIds = await awaitEnd(work, api, remains);
  // A group that is in use belongs to machines that the API didn't show yet.
  const whileInUse = async (inner: AbortSignal): Promise<void> => {
    machineIds = await awaitEnd({ ...work, signal: inner }, api, remains);
  };
  const { groups } = readGroups(
    await describeGroups(api, { creationId: remains.creationId }, work.signal),
  );
  const found = groups.filter((group) => isOf(group, remains)).map(({ id }) => id);
  const groupIds = new Set([remains.groupId, ...found].filter((id) => id !== undefined));
  const left: string[] = [];
  for (const id of groupIds) {
    try {
      const limitMs = machineIds.length === 0 ? waits.visibility.limitMs : 0;
      await removeGroup(api, id, { clock: work.clock, limitMs, whileInUse }, work.signal);
    } catch (error) {
      if (!(error instanceof ClusterError) || error.transient) throw error;
      work.progress.detail(1, `Cannot delete security group ${id}: ${messageOf(error)}`);
      left.push(id);
    }
  }
  return { machineIds, groupIds: left };
}

const isOf = (thing: Pick<Remains, "clusterId" | "creationId">, remains: Remains): boolean =>
  thing.clusterId === remains.clusterId && thing.creationId === remains.creationId;

/**
 * Tags alone don't identify a machine, because anyone who may tag can copy them. On EC2 every
 * machine has a group; some other implementations don't describe any.
 */
function isInGroup({ isInItsGroup, groupIds }: Machine, { groupId }: Remains): boolean {
  return (
    isInItsGroup || groupIds.length === 0 || (groupId !== undefined && groupIds.includes(groupId))
  );
}

/**
 * Polls until all machines of the creation are gone, even those not seen yet. Returns the machines
 * that remain at the limit.
 */
async function awaitEnd(
  { clock, progress, signal }: Work,
  api: CloudApi,
  remains: Remains,
): Promise<readonly string[]> {
  const startMs = passedMs(clock);
  const { ownIds = [], mayEnd = () => true } = remains;
  const requested = new Set(remains.machineIds);
  let left: readonly string[] = [];
  const look = async (inner: AbortSignal): Promise<"ended" | undefined> => {
    const instances = await describeRemains(api, { remains, requested }, inner);
    const { machines, rivals } = readMachines(instances);
    const seen = new Map(
      instances.map((instance) => [instance.InstanceId ?? "", nodeState(instance)]),
    );
    const tagged = [...machines, ...rivals].filter(
      (machine) => isOf(machine, remains) && isInGroup(machine, remains),
    );
    const found = new Set([...ownIds, ...tagged.filter(mayEnd).map(({ id }) => id)]);
    const strays = [...found].filter(
      (id) => seen.has(id) && seen.get(id) !== "ended" && !requested.has(id),
    );
    await terminate(api, strays, clock, inner);
    for (const id of strays) requested.add(id);
    const present = [...requested].filter((id) => seen.has(id) && seen.get(id) !== "ended");
    const unseen =
      passedMs(clock) - startMs < waits.visibility.limitMs
        ? [...requested].filter((id) => !seen.has(id))
        : [];
    left = [...present, ...unseen];
    return left.length === 0 ? "ended" : undefined;
  };
  const waitingFor = (): string =>
    `${left.length} of ${numbered(requested.size, "machine")} to terminate`;
  const seen = (): number => left.length;
  const rule = { ...ruleOf(waits.ending, clock), seen, shows: { progress, waitingFor } };
  await poll(look, rule, signal);
  return left;
}

/**
 * Returns the machines with the creation's tag, and those known by their ids whose tags were
 * changed or aren't visible yet.
 */
async function describeRemains(
  api: CloudApi,
  { remains, requested }: { readonly remains: Remains; readonly requested: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<readonly Instance[]> {
  const tagged = await describeInstances(api, { creationId: remains.creationId }, signal);
  const seen = new Set(tagged.map((instance) => instance.InstanceId));
  const ids = [...new Set([...requested, ...(remains.ownIds ?? [])])].filter((id) => !seen.has(id));
  return ids.length === 0
    ? tagged
    : [...tagged, ...(await describeInstances(api, { ids }, signal))];
}

interface GroupRemoval {
  readonly clock: Clock;
  readonly limitMs: number;
  /** Called before each new try. */
  readonly whileInUse?: (signal: AbortSignal) => Promise<void>;
}

/**
 * Deletes a security group. A missing group counts as deleted; a group that is still in use is
 * retried within the limit.
 */
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
export function leftoversText(
  left: Leftovers,
  expiresAt: Date | undefined,
  nowMs: number,
): string | undefined {
  const machines = left.machineIds.length === 0 ? [] : [`machines ${left.machineIds.join(", ")}`];
  const groups = left.groupIds.map((id) => `security group ${id}`);
  const things = [...machines, ...groups];
  if (things.length === 0) return undefined;
  const end = expiresAt === undefined ? "at their deadline" : `at ${endText(expiresAt, nowMs)}`;
  return `Left behind: ${things.join("; ")}. Machines terminate automatically ${end}; the next create in the region removes the rest.`;
}

/**
 * Terminates the cluster's machines, waits until they are gone, and removes their group. Finds
 * machines by the creation's tag, and on the computer that created the cluster also by their ids;
 * those in the record may be outdated. For an interrupted creation, also uses the requests in its
 * folder. Throws `cloud-failed` if something is left.
 */
export async function removeCluster(
  work: Work,
  api: CloudApi,
  { id: clusterId, creationId, directory }: ClusterName,
): Promise<void> {
  const { clock } = work;
  const launches = await savedLaunches(directory, work);
  const leftMs = (launch: SavedLaunch): number => (expiryOf(launch)?.getTime() ?? 0) - api.now();
  const pending = launches.filter(
    (launch) => leftMs(launch) > (launch.machineIds === undefined ? 0 : oldMs),
  );
  const ended = await endLaunches(api, pending, clock, work.signal);
  const known = launches.flatMap(({ machineIds = [] }) => machineIds);
  const ownIds = [...known, ...((await readOwnLaunches({ directory }))?.machineIds ?? [])];
  const remains = { clusterId, creationId, machineIds: ended, groupId: undefined, ownIds };
  const left = await removeCreation(work, api, remains);
  const expiresAt = launches.map(expiryOf).find((expiry) => expiry !== undefined);
  const text = leftoversText(left, expiresAt, api.now());
  if (text !== undefined) throw new ClusterError("cloud-failed", text, { facts: { ...left } });
}

/**
 * With no more time left than this, a launched machine can be described, or has ended. An hour
 * after its end, the API has forgotten it, and refuses to terminate others together with it.
 */
const oldMs = 0.75 * lifetimeMs;

async function savedLaunches(
  directory: string,
  { progress }: Runtime,
): Promise<readonly SavedLaunch[]> {
  // In a completed creation, every machine has been seen with its tag.
  if (!(await isAbandonedCreation(directory))) return [];
  const { launches, unreadable } = await readLaunches(directory);
  if (unreadable.length > 0) progress.detail(1, `Cannot read the launch records in ${directory}.`);
  return launches;
}

/** Returns when the machines end by themselves. After that, sending the request again would launch new ones. */
function expiryOf({ request }: SavedLaunch): Date | undefined {
  return parseMoment(readTags(request.TagSpecifications?.[0]?.Tags).expiresAt);
}

/** The number of machines that one request accepts. */
const chunkSize = 500;
/**
 * How long to wait for the answer to such a request, with the SDK's own retries, before its
 * machines are looked for.
 */
const answerLimitMs = 10_000;

/** Terminates machines. Retries those that the API doesn't know yet, and ignores those that have ended. */
export async function terminate(
  api: CloudApi,
  ids: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  await mapConcurrently(
    chunksOf(ids, chunkSize),
    2,
    async (chunk) => {
      const send = () => api.call("TerminateInstances", { InstanceIds: [...chunk] }, signal);
      await untilVisible(send, "machine-missing", clock, signal);
    },
    signal,
  );
}

/**
 * Terminates every machine of these launches, and returns the ids of all machines whose termination
 * was requested. If the answer to a launch was lost, sends the same request again, which launches
 * nothing twice. If no answer comes, terminates the machines that the API describes; others may
 * still appear until the creation's group is deleted. If this throws, all machines that the API has
 * named are terminated.
 */
export async function endLaunches(
  api: CloudApi,
  launches: readonly SavedLaunch[],
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const known = launches.flatMap((launch) => launch.machineIds ?? []);
  const endKnown = terminate(api, known, clock, signal).then(() => known);
  const endLearnt = launches
    .filter((launch) => launch.machineIds === undefined)
    .map(async (launch) => endLaunch(api, launch, clock, signal));
  const results = await Promise.allSettled([endKnown, ...endLearnt]);
  const failure = results.find((result) => result.status === "rejected");
  if (failure !== undefined) throw failure.reason;
  return results.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
}

/** Terminates the machines of a launch whose answer isn't known. */
async function endLaunch(
  api: CloudApi,
  launch: SavedLaunch,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const ended = new Set<string>();
  const end = async (ids: readonly string[], inner: AbortSignal): Promise<void> => {
    const added = ids.filter((id) => !ended.has(id));
    await terminate(api, added, clock, inner);
    for (const id of added) ended.add(id);
  };
  const isWhole = (): boolean => ended.size >= (launch.request.MinCount ?? 1);
  const look = async (inner: AbortSignal): Promise<"known" | undefined> => {
    const answer = await launchAgain(api, launch, inner);
    if (answer !== "unanswered") {
      await end(answer, inner);
      return "known";
    }
    await end(await findMachines(api, launch, inner), inner);
    // The token can't launch any more machines.
    return isWhole() ? "known" : undefined;
  };
  await poll(look, ruleOf(waits.learning, clock), signal);
  return [...ended];
}

/** Sends the launch request again. Returns its machines. */
async function launchAgain(
  api: CloudApi,
  { request }: SavedLaunch,
  signal: AbortSignal,
): Promise<readonly string[] | "unanswered"> {
  using limit = watchdog(answerLimitMs, signal);
  try {
    return idsOf((await api.call("RunInstances", request, limit.signal)).Instances ?? []);
  } catch (error) {
    if (limit.hasExpired()) return "unanswered";
    // A refusal shows that the request never launched anything, or that its machines have ended since.
    if (wasRefused(error)) return [];
    if (error instanceof ClusterError && error.transient) return "unanswered";
    throw error;
  }
}

/**
 * Finds the machines of a launch by its token, which nobody can change. Not every implementation of
 * EC2 knows this filter.
 */
async function findMachines(
  api: CloudApi,
  { request: { ClientToken = "" } }: SavedLaunch,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const described = await describeInstances(api, { clientToken: ClientToken }, signal);
  return idsOf(described.filter((instance) => instance.ClientToken === ClientToken));
}

const idsOf = (instances: readonly Instance[]): readonly string[] =>
  instances.map(({ InstanceId }) => InstanceId).filter((id) => id !== undefined);
