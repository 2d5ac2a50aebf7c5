import { ClusterError, messageOf } from "../../errors.ts";
import { type Check, type CheckResult, type Outcome, fail } from "../../model/check.ts";
import type { Clock, Progress } from "../../system/runtime.ts";

interface Runtime {
  readonly clock: Clock;
  readonly progress: Progress;
}

/**
 * Runs all checks at once, and resolves with their results in the given order. It takes at most `limitMs`, and rejects only if the signal is aborted.
 */
export async function runChecks(
  checks: readonly Check[],
  { clock, progress, limitMs }: Runtime & { readonly limitMs: number },
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  return await Promise.all(
    checks.map(async (check) => {
      using step = progress.start("Check", check.name);
      const startedMs = clock.now();
      const bounded = { ...check, limitMs: Math.min(check.limitMs, limitMs) };
      const outcome = await answerWithin(bounded, { clock, progress }, signal);
      step.done(outcome.status);
      return { name: check.name, ...outcome, ms: clock.now() - startedMs };
    }),
  );
}

/** A check that continues after its limit, or after an abort, is left alone: its result no longer matters. */
async function answerWithin(check: Check, runtime: Runtime, signal: AbortSignal): Promise<Outcome> {
  const over = new AbortController();
  const bounded = AbortSignal.any([signal, over.signal]);
  const limit = async (): Promise<Outcome> => {
    await runtime.clock.sleep(check.limitMs, bounded);
    return tooLate(check);
  };
  try {
    return await Promise.race([answer(check, bounded), limit()]);
  } catch (error) {
    signal.throwIfAborted();
    return failureOf(error, check, runtime.progress);
  } finally {
    over.abort();
  }
}

/** A separate async function, so that an error thrown before the first await is also a rejection. */
async function answer(check: Check, signal: AbortSignal): Promise<Outcome> {
  return await check.run(signal);
}

function tooLate(check: Check): Outcome {
  return fail(
    `The check did not finish within ${check.limitMs / 1000} s.`,
    "Try again with -vv to see every request and command.",
  );
}

function failureOf(error: unknown, check: Check, progress: Progress): Outcome {
  if (error instanceof ClusterError)
    return fail(messageOf(error), ClusterError.marked(error).hint ?? "Run doctor again with -vv for details.");
  const what = error instanceof Error ? `${error.name}: ${messageOf(error)}` : messageOf(error);
  progress.detail(
    2,
    `The check "${check.name}" failed with an internal error: ${error instanceof Error ? error.stack : what}`,
  );
  return fail(
    `The check failed with an internal error: ${what}`,
    "Please report this bug with the output of doctor -vv.",
  );
}
