import type { NamedText } from "./contract.ts";
import { type ClusterRecord, nodeReference, type NodeRecord } from "../model/cluster-record.ts";
import { mapConcurrently } from "../system/map-concurrently.ts";

const atOnce = 8;

/** Collects what each node wrote to its console until the signal is aborted. Leaves out nodes for which `read` throws or returns nothing. */
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
  // A separate signal that is never aborted: the texts collected so far are worth keeping.
  await mapConcurrently(nodes, atOnce, collect, new AbortController().signal);
  return texts;
}
