import type { ClusterError } from "../../../errors.ts";
import type { Clock } from "../../../system/runtime.ts";
import { retry } from "../../../system/retry.ts";
import { failureCode } from "./api-errors.ts";
import { ruleOf, waits } from "../../../system/waits.ts";

/** Retries while the API answers with one of `codes`: that it doesn't know a thing created a moment ago. */
export async function untilVisible<Result>(
  task: (signal: AbortSignal) => Promise<Result>,
  codes: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): Promise<Result> {
  const tolerates = (error: ClusterError): boolean => codes.includes(failureCode(error) ?? "");
  return await retry(task, { ...ruleOf(waits.visibility, clock), tolerates }, signal);
}
