/**
 * A signal that is aborted, with the same reason, as soon as one of several is, until it is disposed of. `AbortSignal.any` would do, but
 * Bun 1.4 keeps about 1 KB per call for as long as the longest-lived of the signals lives (seen with 300,000 calls on one signal);
 * commands are many and the program's own signal lives to the end.
 */
export function eitherSignal(signals: readonly AbortSignal[]): Disposable & { readonly signal: AbortSignal } {
  const either = new AbortController();
  const stops = signals.map((signal) => {
    const onAbort = (): void => either.abort(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    return (): void => signal.removeEventListener("abort", onAbort);
  });
  return {
    signal: either.signal,
    [Symbol.dispose]: () => {
      for (const stop of stops) stop();
    },
  };
}

/** Never resolves; rejects with the signal's reason. For races against it. */
export function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
