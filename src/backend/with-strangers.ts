import { type Outcome, warn } from "../model/check.ts";
import type { Stranger } from "./stranger.ts";

/** Adds things that only look like ours to the outcome of `doctor`'s leftovers check. `advice` says what to do about them. */
export function withStrangers(outcome: Outcome, strangers: readonly Stranger[], advice: string): Outcome {
  if (strangers.length === 0) return outcome;
  const things = strangers.map(({ what, why }) => `${what}: ${why}`).join("; ");
  const told = `Looks like ours, but is not as this program makes it, which leaves it alone: ${things}.`;
  if (!("remedy" in outcome)) return warn(told, advice);
  return { ...outcome, message: `${outcome.message} ${told}`, remedy: `${outcome.remedy}; ${advice}` };
}
