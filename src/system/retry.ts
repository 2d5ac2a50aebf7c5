import { ClusterError } from "../errors.ts";
import type { Clock } from "./clock.ts";

export interface RetryRule {
  readonly clock: Clock;
  /** The moment (clock time) after which no further try is begun. */
  readonly deadlineMs: number;
  /** Pause before the next try, given the number of failed tries so far (1, 2, …). */
  readonly pauseMs: (failures: number) => number;
  /** Told of each failure that is followed by another try. */
  readonly onFailure?: (error: ClusterError, failures: number) => void;
}

/**
 * Tries until it succeeds, fails for good (an error whose `transient` is false) or the deadline has come; then the last failure is thrown.
 */
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
