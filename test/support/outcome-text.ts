import type { Outcome } from "../../src/model/check.ts";

/** A check's outcome as one text: `fail: what is wrong → what to do`, then its details, a line each. */
export function outcomeText(outcome: Outcome): string {
  const remedy = "remedy" in outcome ? ` → ${outcome.remedy}` : "";
  return [`${outcome.status}: ${outcome.message}${remedy}`, ...(outcome.details ?? [])].join("\n");
}
