import type { NamedText } from "../contract.ts";
import type { ClusterRecord, NodeRecord } from "../../model/cluster-record.ts";
import { consoleOutputs } from "../shared/node-scripts.ts";
import type { Engine } from "./engine/engine.ts";

const mostLines = 2000;
const keptCharacters = 1_000_000;

/** Collects what each node wrote to its console until the signal is aborted. */
export async function clusterConsoleOutput(
  engine: Engine,
  cluster: ClusterRecord,
  signal: AbortSignal,
): Promise<readonly NamedText[]> {
  return consoleOutputs(cluster.nodes, async (node) => consoleOutput(engine, node, signal), signal);
}

export async function consoleOutput(engine: Engine, { id }: NodeRecord, signal: AbortSignal): Promise<string> {
  return engine.ask({ words: ["logs", `--tail=${mostLines}`, id], keptCharacters }, signal);
}
