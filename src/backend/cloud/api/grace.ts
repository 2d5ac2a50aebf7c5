/**
 * Returns a signal that is aborted `graceMs` after the given one, with the same reason, unless it is disposed of first.
 * Use it for requests that must not be cut off halfway because no token makes them safe to repeat.
 */
export function withGrace(signal: AbortSignal, graceMs: number): Disposable & { readonly signal: AbortSignal } {
  const late = new AbortController();
  const timers: ReturnType<typeof setTimeout>[] = [];
  const onAbort = (): void => {
    timers.push(setTimeout(() => late.abort(signal.reason), graceMs));
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return {
    signal: late.signal,
    [Symbol.dispose]: () => {
      signal.removeEventListener("abort", onAbort);
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
