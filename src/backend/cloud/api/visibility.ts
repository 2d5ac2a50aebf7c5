import type { Clock } from "../../../system/clock.ts";
import { failureCode } from "./api-errors.ts";

/** How long the API may not know a thing that it has just created. https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html */
export const visibilityLimitMs = 120_000;
const pauseMs = 1_000;

/** Retries while the API answers with one of `codes`: that it doesn't know a thing created a moment ago. */
export async function untilVisible<Result>(
  task: () => Promise<Result>,
  codes: readonly string[],
  clock: Clock,
  signal: AbortSignal,
): Promise<Result> {
  const deadlineMs = clock.now() + visibilityLimitMs;
  for (;;) {
    try {
      return await task();
    } catch (error) {
      if (!codes.includes(failureCode(error) ?? "") || clock.now() + pauseMs > deadlineMs) throw error;
      await clock.sleep(pauseMs, signal);
    }
  }
}
