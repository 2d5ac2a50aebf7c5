import { ClusterError, hasErrorId, messageOf, revised } from "../errors.ts";
import { optionName } from "../references.ts";

/** A signal that is aborted with `error` when the time is up, unless it is disposed of first. */
export function timeLimit(ms: number, error: Error): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(error), Math.max(0, ms));
  return { signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}

const tooSlowHint = `Allow more time with ${optionName("timeout")}, or see the log for what was slow.`;

/** Calls the function as soon as the signal is aborted, at once if it is already, until it is disposed of. */
export function onAbort(signal: AbortSignal, act: () => void): Disposable {
  if (signal.aborted) act();
  signal.addEventListener("abort", act, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", act) };
}

/** Calls the function `ms` after the signal is aborted, unless it is disposed of first. */
export function afterAbort(signal: AbortSignal, ms: number, act: () => void): Disposable {
  const late: { timer?: ReturnType<typeof setTimeout> } = {};
  const listening = onAbort(signal, () => {
    late.timer = setTimeout(act, ms);
  });
  return {
    [Symbol.dispose]: () => {
      listening[Symbol.dispose]();
      clearTimeout(late.timer);
    },
  };
}

/** The error for work on a cluster that exceeds its time limit. `work` begins the message, such as "Creating". */
export const tooSlow = (work: string, clusterId: string, hint = tooSlowHint): ClusterError =>
  new ClusterError("deadline-passed", `${work} cluster "${clusterId}" exceeded its time limit.`, {
    hint,
    facts: { cluster: clusterId },
  });

/** After this time, the user learns what the program is waiting for. Most answers take a tenth of it. */
const slowAfterMs = 5_000;

/** Calls `tell` if it is not disposed of within some seconds. */
export function slowNote(tell: () => void): Disposable {
  const timer = setTimeout(tell, slowAfterMs);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** Runs a task with a time limit of its own. After the limit, returns or throws what `onLimit` does. */
export async function withinLimit<Result>(
  limitMs: number,
  task: (signal: AbortSignal) => Promise<Result>,
  onLimit: (error: unknown) => Result,
  signal: AbortSignal,
): Promise<Result> {
  const limit = AbortSignal.timeout(limitMs);
  try {
    return await task(AbortSignal.any([signal, limit]));
  } catch (error) {
    if (signal.aborted || !limit.aborted) throw error;
    return onLimit(error);
  }
}

/**
 * Runs a task. If a time limit aborts the signal meanwhile, adds to the limit's error what the task was waiting for. Of
 * nested calls, only the innermost adds it.
 */
export async function whileWaitingFor<Result>(
  what: () => string,
  task: () => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  try {
    return await task();
  } catch (error) {
    throw signal.aborted && error === signal.reason ? withWhat(error, what()) : error;
  }
}

/** A time limit is set in advance, when nobody knows what it will interrupt. */
function withWhat(error: unknown, what: string): unknown {
  if (!hasErrorId(error, "deadline-passed") || what === "") return error;
  return revised(error, {
    message: `${messageOf(error)} It was still waiting for ${what}.`,
    facts: { waitingFor: what },
  });
}

/**
 * Returns what an aborted task must throw: the signal's reason, or `error` if that is the reason
 * with such an addition.
 */
export function abortReason(error: unknown, signal: AbortSignal): unknown {
  return error instanceof Error && error.cause === signal.reason ? error : signal.reason;
}

/** Aborts work that makes no progress. */
export interface Watchdog extends Disposable {
  /** Aborted by the outer signal, or when the limit has passed since the start or the last `feed`. */
  readonly signal: AbortSignal;
  /** Whether the limit, not the outer signal, ended the work. */
  readonly hasExpired: () => boolean;
  readonly feed: () => void;
}

export function watchdog(limitMs: number, signal: AbortSignal): Watchdog {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), Math.max(0, limitMs));
  return {
    signal: AbortSignal.any([signal, limit.signal]),
    hasExpired: () => limit.signal.aborted && !signal.aborted,
    feed: () => void timer.refresh(),
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

/** Waits for work that ends when the signal is aborted, which is its usual end and no failure. */
export async function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  await work.catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/**
 * Resolves with the result of the work, or rejects with the signal's reason as soon as it is aborted. The work goes on,
 * but its result is ignored.
 */
export async function orAborted<Result>(
  work: Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  using _ = onAbort(signal, () => aborted.reject(signal.reason));
  return await Promise.race([aborted.promise, work]);
}

/**
 * Returns a signal that aborts, with the same reason, as soon as one of the given signals does, until it is disposed
 * of. This replaces `AbortSignal.any`, because Bun 1.4 leaks about 1 KB per call until the longest-lived of the signals
 * is collected (seen with 300,000 calls on one signal): there are many commands, and the program's own signal lives
 * until the end.
 */
export function eitherSignal(
  signals: readonly AbortSignal[],
): Disposable & { readonly signal: AbortSignal } {
  const either = new AbortController();
  const listening = signals.map((signal) => onAbort(signal, () => either.abort(signal.reason)));
  return {
    signal: either.signal,
    [Symbol.dispose]: () => {
      for (const each of listening) each[Symbol.dispose]();
    },
  };
}
