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

/** Smaller differences between this machine's clock and the cloud's don't matter to anyone who reads times left. */
export const shownSkewMs = 60_000;

export const clockText = (behindMs: number): string =>
  `This machine's clock is ${Math.round(Math.abs(behindMs) / 1000)} s ${behindMs > 0 ? "behind" : "ahead of"} the cloud's`;
