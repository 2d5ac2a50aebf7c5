import { nodeReference, type NodeRecord } from "../model/cluster-record.ts";
import { ClusterError } from "../errors.ts";
import { outside } from "../outside-text.ts";
import { outsideLines } from "../system/printable.ts";

const shownLines = 8;
/** Escape sequences with which a firmware or a boot loader moves the cursor. */
// oxlint-disable-next-line no-control-regex
const sequences = /\u001B\[[0-9;?]*[A-Za-z]/g;

/**
 * Returns the error for a creation whose node ended by itself. `said` is the output on its console; `hint` is what to do if the reason doesn't tell.
 */
export function machineFailed(
  node: NodeRecord,
  { said, hint }: { readonly said: string; readonly hint: string },
): ClusterError {
  const name = nodeReference(node);
  const lastLines = outsideLines(said.replaceAll(sequences, ""), shownLines).map((line) => `  ${line}`);
  const stateReason = node.stateReason === undefined ? undefined : outside(node.stateReason);
  const reason = stateReason ?? "the reason is not known";
  return new ClusterError(
    "machine-failed",
    [`${name} (${node.id}) stopped before it could be used: ${reason}.`, ...lastLines].join("\n"),
    {
      hint,
      facts: { node: name, machine: node.id, reason: stateReason },
    },
  );
}
