import type { Outcome } from "../../src/model/check.ts";

/** Renders a check's outcome: `fail: what is wrong → what to do`, then one line for each detail. */
export function outcomeText(outcome: Outcome): string {
  const remedy = "remedy" in outcome ? ` → ${outcome.remedy}` : "";
  return [`${outcome.status}: ${outcome.message}${remedy}`, ...(outcome.details ?? [])].join("\n");
}
