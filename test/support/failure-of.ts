import type { ClusterError } from "../../src/errors.ts";

/**
 * What a promise rejects with. To be preferred to `expect(promise).rejects`: while that waits, Bun 1.4 turns its event loop in a way of its own, in
 * which whatever follows a socket's close comes up to a second late.
 */
export async function failureOf(promise: Promise<unknown>): Promise<Error & Partial<ClusterError>> {
  const outcome: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (outcome instanceof Error) return outcome as Error & Partial<ClusterError>;
  throw new TypeError(`The promise did not reject with an error: ${String(outcome)}`);
}
