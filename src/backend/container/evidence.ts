import { type ClusterRecord, nodeReference, type NodeRecord } from "../../cluster/record.ts";
import { runAtOnce } from "../../system/concurrency.ts";
import type { NamedText } from "../backend.ts";
import type { Engine } from "./engine.ts";

const atOnce = 8;
const lines = 2000;

/** What each node wrote to its console, as far as it can be had before the signal is aborted. */
export async function consoleOutputs(
  engine: Engine,
  cluster: ClusterRecord,
  signal: AbortSignal,
): Promise<readonly NamedText[]> {
  const texts: NamedText[] = [];
  const collect = async (node: NodeRecord): Promise<void> => {
    if (signal.aborted) return;
    const text = await engine.ask({ words: ["logs", `--tail=${lines}`, node.id] }, signal).catch(() => "");
    if (text !== "") texts.push({ name: `${nodeReference(node)}.console.txt`, text });
  };
  // Its own signal, never aborted: what was collected so far is worth having.
  await runAtOnce(cluster.nodes, atOnce, collect, new AbortController().signal);
  return texts;
}
