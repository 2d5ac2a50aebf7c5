import { ClusterError } from "../errors.ts";
import type { Clock } from "./clock.ts";

export interface RetryRule {
  readonly clock: Clock;
  /** The time (of `clock`) after which no further try begins. */
  readonly deadlineMs: number;
  /** The pause before the next try, given the number of failed tries so far (1, 2, …). */
  readonly pauseMs: (failures: number) => number;
  /** Called for each failure that is followed by another try. */
  readonly onFailure?: (error: ClusterError, failures: number) => void;
}

/** Tries until it succeeds, fails permanently (an error whose `transient` is false) or reaches the deadline. Then it throws the last failure. */
export async function retry<Result>(
  task: (signal: AbortSignal) => Promise<Result>,
  rule: RetryRule,
  signal: AbortSignal,
): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted();
    try {
      return await task(signal);
    } catch (error) {
      signal.throwIfAborted();
      const pauseMs = rule.pauseMs(failures);
      if (!(error instanceof ClusterError) || !error.transient || rule.clock.now() + pauseMs > rule.deadlineMs)
        throw error;
      rule.onFailure?.(error, failures);
      await rule.clock.sleep(pauseMs, signal);
    }
  }
}
