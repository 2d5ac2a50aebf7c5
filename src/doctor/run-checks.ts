import { ClusterError } from "../errors.ts";
import type { Clock } from "../system/clock.ts";
import type { Progress } from "../system/progress.ts";
import { type Check, type CheckResult, fail, type Outcome } from "../model/check.ts";

interface Surroundings {
  readonly clock: Clock;
  readonly progress: Progress;
}

/**
 * Runs all checks at once, and resolves with what they found in the order in which they were given: after `limitMs` at the latest, and
 * never with a rejection, unless the signal is aborted.
 */
export async function runChecks(
  checks: readonly Check[],
  { clock, progress, limitMs }: Surroundings & { readonly limitMs: number },
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

/** A check that goes on after its limit, or after an abort, is left alone: what it would say is of no more interest. */
async function answerWithin(check: Check, surroundings: Surroundings, signal: AbortSignal): Promise<Outcome> {
  const over = new AbortController();
  const bounded = AbortSignal.any([signal, over.signal]);
  const limit = async (): Promise<Outcome> => {
    await surroundings.clock.sleep(check.limitMs, bounded);
    return tooLate(check);
  };
  try {
    return await Promise.race([answer(check, bounded), limit()]);
  } catch (error) {
    signal.throwIfAborted();
    return failureOf(error, check, surroundings.progress);
  } finally {
    over.abort();
  }
}

/** In a function of its own, so that what is thrown before the first await is a rejection too. */
async function answer(check: Check, signal: AbortSignal): Promise<Outcome> {
  return await check.run(signal);
}

function tooLate(check: Check): Outcome {
  return fail(
    `There was no answer within ${check.limitMs / 1000} s.`,
    "Try again; with -vv all that is asked for is shown.",
  );
}

function failureOf(error: unknown, check: Check, progress: Progress): Outcome {
  if (error instanceof ClusterError) return fail(error.message, error.hint ?? "Run doctor again with -vv to see more.");
  const what = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  progress.detail(2, `The check "${check.name}" broke: ${error instanceof Error ? error.stack : what}`);
  return fail(
    `The check itself broke: ${what}`,
    "That is a fault of this program: please report it, with what -vv shows.",
  );
}
