import type { ClusterError } from "../../../errors.ts";
import type { Clock } from "../../../system/runtime.ts";
import { retry } from "../../../system/retry.ts";
import { failureCode } from "./api-errors.ts";

/** How long the API may not know a thing that it has just created. https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html */
export const visibilityLimitMs = 120_000;
const pauseMs = 1_000;

/** Retries while the API answers with one of `codes`: that it doesn't know a thing created a moment ago. */
export async function untilVisible<Result>(
  task: (signal: AbortSignal) => Promise<Result>,
  codes: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): Promise<Result> {
  const tolerates = (error: ClusterError): boolean => codes.includes(failureCode(error) ?? "");
  const rule = { clock, deadlineMs: clock.now() + visibilityLimitMs, pauseMs: () => pauseMs, tolerates };
  return await retry(task, rule, signal);
}
