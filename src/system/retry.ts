import { ClusterError } from "../errors.ts";
import { type Clock, type Progress, passedMs } from "./runtime.ts";
import { abortReason } from "./time-limit.ts";

export interface RetryRule {
  readonly clock: Clock;
  /** The time (of `clock`) after which no further try begins. Default: only `mostTries` and the signal limit them. */
  readonly deadlineMs?: number;
  /**
   * What the last try saw. Whenever it changes, the time until the deadline begins again: only
   * tries without progress end there.
   */
  readonly seen?: () => unknown;
  /** With `seen`: the time (of `clock`) after which no further try begins in any case. */
  readonly latestMs?: number;
  /** The number of tries, including the first. Default: only `deadlineMs` and the signal limit them. */
  readonly mostTries?: number;
  /** The pause before the next try, given the number of failed tries so far (1, 2, …). */
  readonly pauseMs: (failures: number) => number;
  /** Whether the failure is worth another try. Default: if it is `transient`. */
  readonly tolerates?: (error: ClusterError) => boolean;
  /** Called for each failure that is followed by another try. */
  readonly onFailure?: (error: ClusterError) => void;
}

/**
 * Tries until it succeeds, fails in a way that isn't tolerated, or reaches a limit. Then it throws
 * the last failure.
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
    latestMs = Infinity,
    tolerates = ({ transient }: ClusterError) => transient,
  } = rule;
  const limitMs = deadlineMs - clock.now();
  const offsetMs = passedMs(clock) - clock.now();
  const last = { seen: rule.seen?.(), deadlineMs: deadlineMs + offsetMs };
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted();
    try {
      return await task(signal);
    } catch (error) {
      if (signal.aborted) throw abortReason(error, signal);
      if (!(error instanceof ClusterError) || !tolerates(error) || failures >= mostTries)
        throw error;
      const pauseMs = rule.pauseMs(failures);
      const now = rule.seen?.();
      if (now !== last.seen)
        Object.assign(last, { seen: now, deadlineMs: passedMs(clock) + limitMs });
      if (passedMs(clock) + pauseMs > Math.min(last.deadlineMs, latestMs + offsetMs)) throw error;
      rule.onFailure?.(error);
      await clock.sleep(pauseMs, signal);
    }
  }
}

export interface PollRule {
  readonly clock: Clock;
  /** The time (of `clock`) of the last look. Without it, only the signal limits the wait. */
  readonly deadlineMs?: number;
  /** The pause after a look without a result, given the number of looks so far (1, 2, …). */
  readonly pauseMs: (looks: number) => number;
  /**
   * Shows what it is waiting for, such as "2 machines to end", after each look without a result,
   * and clears that at the end.
   */
  readonly shows?: {
    readonly progress: Pick<Progress, "waiting">;
    readonly waitingFor: () => string;
  };
  /**
   * What the last look saw. Whenever it changes, the time until the deadline begins again: only a
   * wait without progress ends there.
   */
  readonly seen?: () => unknown;
  /** Failures that count as a look without a result. All others end the wait. */
  readonly tolerates?: (error: unknown) => boolean;
  /** Returns, for each pause, a signal that ends it early. */
  readonly wakeUp?: () => AbortSignal;
}

/**
 * Looks until there is a result other than `undefined`, and returns it. At the deadline it looks one last time. If
 * there is still no result, it returns `undefined`, or throws the failure of that look.
 */
export async function poll<Result>(
  look: (signal: AbortSignal) => Promise<Result | undefined>,
  rule: PollRule & { readonly deadlineMs?: never },
  signal: AbortSignal,
): Promise<Result>;
export async function poll<Result>(
  look: (signal: AbortSignal) => Promise<Result | undefined>,
  rule: PollRule,
  signal: AbortSignal,
): Promise<Result | undefined>;
export async function poll<Result>(
  look: (signal: AbortSignal) => Promise<Result | undefined>,
  rule: PollRule,
  signal: AbortSignal,
): Promise<Result | undefined> {
  const { clock, deadlineMs = Infinity, shows } = rule;
  const limitMs = deadlineMs - clock.now();
  const shown = { text: "" };
  const last = { seen: rule.seen?.(), deadlineMs: passedMs(clock) + limitMs };
  try {
    for (let looks = 1; ; looks += 1) {
      const seen = await lookOnce(look, rule, signal);
      if (seen.result !== undefined) return seen.result;
      const now = rule.seen?.();
      if (now !== last.seen)
        Object.assign(last, { seen: now, deadlineMs: passedMs(clock) + limitMs });
      const leftMs = last.deadlineMs - passedMs(clock);
      if (leftMs <= 0) {
        if (seen.failure !== undefined) throw seen.failure.error;
        return undefined;
      }
      if (shows !== undefined) show(shows, shown);
      await pause(Math.min(rule.pauseMs(looks), leftMs), rule, signal);
    }
  } finally {
    if (shown.text !== "") shows?.progress.waiting("");
  }
}

async function lookOnce<Result>(
  look: (signal: AbortSignal) => Promise<Result | undefined>,
  { tolerates }: PollRule,
  signal: AbortSignal,
) {
  signal.throwIfAborted();
  try {
    return { result: await look(signal) };
  } catch (error) {
    if (signal.aborted) throw abortReason(error, signal);
    if (tolerates?.(error) !== true) throw error;
    return { result: undefined, failure: { error } };
  }
}

/** After each look, because a look may have shown what it waited for itself, and cleared that. */
function show(
  { progress, waitingFor }: NonNullable<PollRule["shows"]>,
  shown: { text: string },
): void {
  const text = waitingFor();
  if (text === "" && shown.text === "") return;
  shown.text = text;
  progress.waiting(text === "" ? "" : `waiting for ${text}`);
}

/** A sleep rejects both when it is woken and when it is aborted. The next look shows which. */
async function pause(ms: number, { clock, wakeUp }: PollRule, signal: AbortSignal): Promise<void> {
  if (wakeUp === undefined) return await clock.sleep(ms, signal);
  await clock.sleep(ms, AbortSignal.any([signal, wakeUp()])).catch(() => {});
}
