import { ClusterError } from "../errors.ts";
import type { Clock } from "./runtime.ts";
import { abortReason } from "./time-limit.ts";

export interface RetryRule {
  readonly clock: Clock;
  /** The time (of `clock`) after which no further try begins. Default: only `mostTries` and the signal limit them. */
  readonly deadlineMs?: number;
  /** The number of tries, including the first. Default: only `deadlineMs` and the signal limit them. */
  readonly mostTries?: number;
  /** The pause before the next try, given the number of failed tries so far (1, 2, …). */
  readonly pauseMs: (failures: number) => number;
  /** Whether the failure is worth another try. Default: if it is `transient`. */
  readonly tolerates?: (error: ClusterError) => boolean;
  /** Called for each failure that is followed by another try. */
  readonly onFailure?: (error: ClusterError, failures: number) => void;
}

/**
 * Tries until it succeeds, fails in a way that isn't tolerated, or reaches a limit. Then it throws the last failure.
 */
export async function retry<Result>(
  task: (signal: AbortSignal) => Promise<Result>,
  rule: RetryRule,
  signal: AbortSignal,
): Promise<Result> {
  const {
    clock,
    deadlineMs = Infinity,
    mostTries = Infinity,
    tolerates = ({ transient }: ClusterError) => transient,
  } = rule;
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted();
    try {
      return await task(signal);
    } catch (error) {
      if (signal.aborted) throw abortReason(error, signal);
      if (!(error instanceof ClusterError) || !tolerates(error) || failures >= mostTries) throw error;
      const pauseMs = rule.pauseMs(failures);
      if (clock.now() + pauseMs > deadlineMs) throw error;
      rule.onFailure?.(error, failures);
      await clock.sleep(pauseMs, signal);
    }
  }
}
