/**
 * Resolves with the result of the work, or rejects with the signal's reason as soon as it is aborted. The work goes on,
 * but its result is ignored.
 */
export async function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([aborted.promise, work]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
