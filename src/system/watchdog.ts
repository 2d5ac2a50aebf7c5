/** Aborts work that makes no progress. */
export interface Watchdog extends Disposable {
  /** Aborted by the outer signal, or when the limit has passed since the start or the last `feed`. */
  readonly signal: AbortSignal;
  /** Whether the limit, not the outer signal, ended the work. */
  readonly hasBitten: () => boolean;
  readonly feed: () => void;
}

export function watchdog(limitMs: number, signal: AbortSignal): Watchdog {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), limitMs);
  return {
    signal: AbortSignal.any([signal, limit.signal]),
    hasBitten: () => limit.signal.aborted && !signal.aborted,
    feed: () => void timer.refresh(),
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
