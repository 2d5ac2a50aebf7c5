import type { Clock } from "../../../system/runtime.ts";
import { mapConcurrently } from "../../../system/map-concurrently.ts";
import type { Instance } from "@aws-sdk/client-ec2";
import { failureCode, isCredentialsRefused, wasRefused } from "../api/api-errors.ts";
import { describeInstances } from "../api/describe.ts";
import { incompleteAnswer } from "../api/judge-answer.ts";
import type { CloudApi } from "../api/api.ts";
import type { SavedLaunch } from "../launch/saved-requests.ts";
import { untilVisible } from "../api/visibility.ts";

/** The number of machines that one request accepts. */
const chunkSize = 500;

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
      await untilVisible(send, ["InvalidInstanceID.NotFound"], clock, signal);
    },
    signal,
  );
}

/**
 * Terminates every machine that these launches created. If an answer isn't known, sends the very same request again: it launches nothing twice and
 * returns what it had launched (or launches it now, for a moment). Returns the ids of all machines that the API was told to terminate. If it throws,
 * it has already terminated every machine that it could learn about.
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
    .map(async (launch) => {
      const ids = await learnMachines(api, launch, signal);
      await terminate(api, ids, clock, signal);
      return ids;
    });
  const results = await Promise.allSettled([endKnown, ...endLearnt]);
  const failure = results.find((result) => result.status === "rejected");
  if (failure !== undefined) throw failure.reason;
  return results.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
}

async function learnMachines(api: CloudApi, launch: SavedLaunch, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return idsOf((await api.call("RunInstances", launch.request, signal)).Instances ?? []);
  } catch (error) {
    if (failureCode(error) === incompleteAnswer) return await findMachines(api, launch, error, signal);
    // A definite refusal, for example because the group is gone. So the request launched nothing earlier, or those machines have since ended.
    if (wasRefused(error) && !isCredentialsRefused(error)) return [];
    throw error;
  }
}

/** Finds the machines of a launch whose answer doesn't name them. Throws `error` unless all of them are found. */
async function findMachines(
  api: CloudApi,
  { request }: SavedLaunch,
  error: unknown,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const ids = idsOf(await describeInstances(api, { clientToken: request.ClientToken ?? "" }, signal));
  if (ids.length < (request.MinCount ?? 1)) throw error;
  return ids;
}

const idsOf = (instances: readonly Instance[]): readonly string[] =>
  instances.map(({ InstanceId }) => InstanceId).filter((id) => id !== undefined);
