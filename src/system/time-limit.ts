/** A signal that is aborted with `error` when the time is up, unless it is disposed of first. */
export function timeLimit(ms: number, error: Error): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(error), Math.max(0, ms));
  return { signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}
