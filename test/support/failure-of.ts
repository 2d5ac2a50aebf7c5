import type { ClusterError } from "../../src/errors.ts";

/**
 * Returns the error of a promise that rejects. Use it instead of `expect(promise).rejects`: while that waits, Bun 1.4
 * runs its event loop differently, and everything that follows the close of a socket may be up to a second late.
 */
export async function failureOf(promise: Promise<unknown>): Promise<Error & Partial<ClusterError>> {
  const outcome = await rejectionOf(promise);
  if (outcome instanceof Error) return outcome as Error & Partial<ClusterError>;
  throw new TypeError(`The promise did not reject with an error: ${String(outcome)}`);
}

/** Returns the reason of a promise that rejects; undefined if it resolves. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
}
