import { readFile } from "node:fs/promises";
import type { ClusterRecord, NodeRecord } from "../../model/cluster-record.ts";
import type { NamedText } from "../backend.ts";
import { consoleOutputs } from "../console-outputs.ts";
import { machineFiles } from "./machine-files.ts";

const mostCharacters = 1_000_000;

/** What each node wrote to its serial console: firmware, bootloader, kernel, services. */
export async function evidence(cluster: ClusterRecord, signal: AbortSignal): Promise<readonly NamedText[]> {
  return consoleOutputs(cluster.nodes, async (node) => consoleOutput(cluster.directory, node), signal);
}

export async function consoleOutput(directory: string, node: NodeRecord): Promise<string> {
  return (await readFile(machineFiles(directory, node).console, "utf8")).slice(-mostCharacters);
}
