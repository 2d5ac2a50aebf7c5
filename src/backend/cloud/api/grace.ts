/**
 * A signal that is aborted `graceMs` after another one, with the same reason, until it is disposed of. For requests that must not be cut off
 * in the middle, because they can't be asked again under a token.
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
