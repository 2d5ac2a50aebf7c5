import type { Outcome } from "../model/check.ts";
import type { ForeignResource } from "./foreign-resource.ts";
import { withFinding } from "./with-finding.ts";

/** Adds things that only look like ours to the outcome of `doctor`'s leftovers check. `advice` says what to do about them. */
export function withForeignResources(
  outcome: Outcome,
  foreignResources: readonly ForeignResource[],
  advice: string,
): Outcome {
  if (foreignResources.length === 0) return outcome;
  const things = foreignResources.map(({ what, why }) => `${what}: ${why}`).join("; ");
  const told = `Resembles a part of a cluster, but this program did not create it in this form and ignores it: ${things}.`;
  return withFinding(outcome, told, advice);
}
