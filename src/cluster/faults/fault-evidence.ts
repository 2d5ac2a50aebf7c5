import { ClusterError } from "../../errors.ts";
import type { Observed } from "../../platform/faults/fault-kind.ts";
import { type FaultRequest, faultRows } from "../../platform/faults/fault-kinds.ts";

/**
 * Compares observations from before and after the beginning of a fault, and describes the difference. Throws
 * `remote-command-failed` if the fault doesn't show.
 */
export function faultEvidence(
  request: FaultRequest,
  before: readonly Observed[],
  after: readonly Observed[],
): string {
  const row = faultRows[request.kind];
  const found = `${row.state(after, before)}, before: ${row.state(before)}`;
  if (row.shows(request, before, after)) return found;
  throw new ClusterError(
    "remote-command-failed",
    `The fault was begun, but does not show: ${found}.`,
    {
      hint: "It has been healed. Make sure that it lasts long enough, and that nothing on the nodes undoes it.",
      facts: { fault: request.kind },
    },
  );
}
