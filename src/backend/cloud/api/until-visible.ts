import type { ClusterError } from "../../../errors.ts";
import type { Clock } from "../../../system/runtime.ts";
import { retry } from "../../../system/retry.ts";
import { type FailureMeaning, isFailure } from "./api-errors.ts";
import { ruleOf, waits } from "../../../system/waits.ts";

/** Retries while the API doesn't know a thing that was created a moment ago. */
export async function untilVisible<Result>(
  task: (signal: AbortSignal) => Promise<Result>,
  missing: FailureMeaning,
  clock: Clock,
  signal: AbortSignal,
): Promise<Result> {
  const tolerates = (error: ClusterError): boolean => isFailure(error, missing);
  return await retry(task, { ...ruleOf(waits.visibility, clock), tolerates }, signal);
}
