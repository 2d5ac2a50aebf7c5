import type { Machine } from "./read-machines.ts";

/** Every cloud cluster ends this long after its launch. */
export const lifetimeMs = 2 * 60 * 60 * 1000;

/**
 * Whether a machine has outlived its cluster. Anyone who may tag can change the deadline in its tag, but not the API's launch time, so both must
 * be over: a changed tag neither ends a running cluster nor frees its id.
 */
export function isPastDeadline(
  { expiresAt, launchedAt }: Pick<Machine, "expiresAt" | "launchedAt">,
  nowMs: number,
): boolean {
  if (expiresAt === undefined || launchedAt === undefined) return false;
  return Math.max(expiresAt.getTime(), launchedAt.getTime() + lifetimeMs) < nowMs;
}
