import { nodeReference, type NodeRecord } from "../model/cluster-record.ts";
import { ClusterError } from "../errors.ts";
import { outside } from "../outside-text.ts";

const shownLines = 8;
/** Matches terminal escape sequences, such as colours, and control characters. */
// oxlint-disable-next-line no-control-regex
const controls = /\u001B\[[0-9;?]*[A-Za-z]|[^\P{Cc}\n]/gu;

/**
 * Returns the error for a creation whose node ended by itself. `said` is the output on its console; `hint` is what to do if the reason doesn't tell.
 */
export function machineFailed(
  node: NodeRecord,
  { said, hint }: { readonly said: string; readonly hint: string },
): ClusterError {
  const name = nodeReference(node);
  const lastLines = said.replace(controls, "").trim().split("\n").slice(-shownLines).join("\n");
  const stateReason = node.stateReason === undefined ? undefined : outside(node.stateReason);
  const reason = stateReason ?? "the reason is not known";
  return new ClusterError(
    "machine-failed",
    `${name} (${node.id}) stopped before it could be used: ${reason}.\n${outside(lastLines)}`.trim(),
    {
      hint,
      facts: { node: name, machine: node.id, reason: stateReason },
    },
  );
}
