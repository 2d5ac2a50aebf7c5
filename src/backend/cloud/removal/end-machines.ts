import type { Clock } from "../../../system/clock.ts";
import { runAtOnce } from "../../../system/run-at-once.ts";
import { isCredentialsRefused, wasRefused } from "../api/api-errors.ts";
import type { CloudApi } from "../api/api.ts";
import type { SavedLaunch } from "../launch/saved-requests.ts";
import { untilVisible } from "../api/visibility.ts";

/** The number of machines that one request accepts. */
const chunkSize = 500;

/** Terminates machines. Retries those that the API doesn't know yet; those that have already ended do no harm. */
export async function terminate(
  api: CloudApi,
  ids: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const chunks = Array.from({ length: Math.ceil(ids.length / chunkSize) }, (_, index) =>
    ids.slice(index * chunkSize, (index + 1) * chunkSize),
  );
  await runAtOnce(
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
  const endKnown = known.length === 0 ? [] : [terminate(api, known, clock, signal).then(() => known)];
  const endLearnt = launches
    .filter((launch) => launch.machineIds === undefined)
    .map(async (launch) => {
      const ids = await learnMachines(api, launch, signal);
      if (ids.length > 0) await terminate(api, ids, clock, signal);
      return ids;
    });
  const results = await Promise.allSettled([...endKnown, ...endLearnt]);
  const failure = results.find((result) => result.status === "rejected");
  if (failure !== undefined) throw failure.reason;
  return results.flatMap((result) => (result.status === "fulfilled" ? result.value : []));
}

async function learnMachines(api: CloudApi, launch: SavedLaunch, signal: AbortSignal): Promise<readonly string[]> {
  try {
    const answer = await api.call("RunInstances", launch.request, signal);
    return (answer.Instances ?? []).map((instance) => instance.InstanceId).filter((id) => id !== undefined);
  } catch (error) {
    // A definite refusal, for example because the group is gone. So the request launched nothing earlier, or those machines have since ended.
    if (wasRefused(error) && !isCredentialsRefused(error)) return [];
    throw error;
  }
}
