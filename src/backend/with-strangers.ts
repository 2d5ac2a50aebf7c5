import { type Outcome, warn } from "../model/check.ts";
import type { Stranger } from "./stranger.ts";

/** What the doctor says of leftovers, and of what only looks like ours. `advice`: what to do about that. */
export function withStrangers(outcome: Outcome, strangers: readonly Stranger[], advice: string): Outcome {
  if (strangers.length === 0) return outcome;
  const things = strangers.map(({ what, why }) => `${what}: ${why}`).join("; ");
  const told = `Looks like ours, but is not as this program makes it, which leaves it alone: ${things}.`;
  if (!("remedy" in outcome)) return warn(told, advice);
  return { ...outcome, message: `${outcome.message} ${told}`, remedy: `${outcome.remedy}; ${advice}` };
}
