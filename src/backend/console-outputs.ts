import { type ClusterRecord, nodeReference, type NodeRecord } from "../model/cluster-record.ts";
import { runAtOnce } from "../system/run-at-once.ts";
import type { NamedText } from "../model/backend.ts";

const atOnce = 8;

/**
 * What each node wrote to its console, as far as it can be had before the signal is aborted. A node that `read` throws for, or gives nothing
 * for, has no part in it.
 */
export async function consoleOutputs(
  nodes: ClusterRecord["nodes"],
  read: (node: NodeRecord) => Promise<string>,
  signal: AbortSignal,
): Promise<readonly NamedText[]> {
  const texts: NamedText[] = [];
  const collect = async (node: NodeRecord): Promise<void> => {
    if (signal.aborted) return;
    const text = await read(node).catch(() => "");
    if (text !== "") texts.push({ name: `${nodeReference(node)}.console.txt`, text });
  };
  // Its own signal, never aborted: what was collected so far is worth having.
  await runAtOnce(nodes, atOnce, collect, new AbortController().signal);
  return texts;
}
