import type { Clock } from "../../../system/runtime.ts";
import { mapConcurrently } from "../../../system/map-concurrently.ts";
import type { Instance } from "@aws-sdk/client-ec2";
import { ClusterError } from "../../../errors.ts";
import { isCredentialsRefused, wasRefused } from "../api/api-errors.ts";
import { describeInstances } from "../api/describe.ts";
import type { CloudApi } from "../api/api.ts";
import type { SavedLaunch } from "../launch/saved-requests.ts";
import { poll } from "../../../system/poll.ts";
import { watchdog } from "../../../system/time-limit.ts";
import { untilVisible } from "../api/until-visible.ts";
import { ruleOf, waits } from "../../../system/waits.ts";

/** The number of machines that one request accepts. */
const chunkSize = 500;
/** How long to wait for the answer to such a request, with the SDK's own retries, before its machines are looked for. */
const answerLimitMs = 10_000;

/** Terminates machines. Retries those that the API doesn't know yet; those that have already ended do no harm. Without ids, sends nothing. */
export async function terminate(
  api: CloudApi,
  ids: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const chunks = Array.from({ length: Math.ceil(ids.length / chunkSize) }, (_, index) =>
    ids.slice(index * chunkSize, (index + 1) * chunkSize),
  );
  await mapConcurrently(
    chunks,
    2,
    async (InstanceIds) => {
      const send = () => api.call("TerminateInstances", { InstanceIds }, signal);
      await untilVisible(send, "machine-missing", clock, signal);
    },
    signal,
  );
}

/**
 * Terminates every machine that these launches created. If an answer isn't known, sends the very same request again: it launches nothing twice and
 * returns what it had launched (or launches it now, for a moment). If no answer comes, terminates the machines that the API describes; then some may
 * still appear until the creation's security group is deleted, without which the request fails. Returns the ids of all machines that the API was told
 * to terminate. If it throws, it has already terminated every machine that it could learn about.
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
    // A definite refusal, for example because the group is gone. So the request launched nothing earlier, or those machines have since ended.
    if (wasRefused(error) && !isCredentialsRefused(error)) return [];
    if (error instanceof ClusterError && error.transient) return "unanswered";
    throw error;
  }
}

/** Finds the machines of a launch by its token, which nobody can change. Also checks the answer, since only some implementations of EC2 know this filter. */
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
