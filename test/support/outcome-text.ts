import type { Outcome } from "../../src/model/check.ts";
import { unmarked } from "../../src/outside-text.ts";

/** Renders a check's outcome as users see it: `fail: what is wrong → what to do`, then one line for each detail. */
export function outcomeText(outcome: Outcome): string {
  const remedy = "remedy" in outcome ? ` → ${outcome.remedy}` : "";
  return unmarked(
    [`${outcome.status}: ${outcome.message}${remedy}`, ...(outcome.details ?? [])].join("\n"),
  );
}
