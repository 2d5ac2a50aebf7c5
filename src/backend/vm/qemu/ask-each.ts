import { ClusterError, revised } from "../../../errors.ts";
import { type NodeRecord, nodeReference } from "../../../model/cluster-record.ts";
import { optionName } from "../../../references.ts";
import type { Progress } from "../../../system/runtime.ts";
import { slowNote } from "../../../system/time-limit.ts";

type Name = Pick<NodeRecord, "role" | "index">;

/**
 * Asks the QEMUs of all these nodes at once. After some seconds, a note names those that are still
 * silent: they may be busy, and have minutes. Where the caller gets an error, it says what to do.
 */
export async function askEach<Node extends Name, Answer>(
  { progress }: { readonly progress: Pick<Progress, "note"> },
  nodes: readonly Node[],
  ask: (node: Node) => Promise<Answer>,
): Promise<readonly Answer[]> {
  const silent = new Set(nodes);
  const names = (): string => [...silent].map(nodeReference).join(", ");
  using _slow = slowNote(() => progress.note(`Waiting for QEMU to answer for ${names()}.`));
  const askOne = async (node: Node): Promise<Answer> => {
    try {
      return await ask(node);
    } catch (error) {
      throw withRemedy(error, nodeReference(node));
    } finally {
      silent.delete(node);
    }
  };
  return await Promise.all(nodes.map(askOne));
}

/** Only the system can end a QEMU that hangs. */
function withRemedy(error: unknown, name: string): unknown {
  if (!(error instanceof ClusterError) || error.facts["answers"] !== false) return error;
  return revised(error, {
    hint: `Try again when this computer has less to do. If QEMU hangs, stop ${name} with ${optionName("force")}, and start it.`,
  });
}
