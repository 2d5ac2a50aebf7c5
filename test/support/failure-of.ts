import type { ClusterError } from "../../src/errors.ts";

/**
 * Returns the error of a promise that rejects. Use it instead of `expect(promise).rejects`: while that waits, Bun 1.4
 * runs its event loop differently, and everything that follows the close of a socket may be up to a second late.
 */
export async function failureOf(promise: Promise<unknown>): Promise<Error & Partial<ClusterError>> {
  const outcome: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (outcome instanceof Error) return outcome as Error & Partial<ClusterError>;
  throw new TypeError(`The promise did not reject with an error: ${String(outcome)}`);
}
