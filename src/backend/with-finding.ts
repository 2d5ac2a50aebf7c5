import { type Outcome, warn } from "../model/check.ts";

/** Adds one more problem, and what to do about it, to the outcome of a check. */
export function withFinding(outcome: Outcome, message: string, remedy: string): Outcome {
  if (!("remedy" in outcome)) return warn(message, remedy);
  return { ...outcome, message: `${outcome.message} ${message}`, remedy: `${outcome.remedy}; ${remedy}` };
}
