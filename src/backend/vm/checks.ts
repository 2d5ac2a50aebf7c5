import type { Check } from "../../doctor/check.ts";
import type { Surroundings } from "../backend.ts";

/** What `doctor` looks at where clusters are virtual machines. */
export function vmChecks(_: Surroundings, __: AbortSignal): readonly Check[] {
  return [];
}
