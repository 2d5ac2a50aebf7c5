import { open } from "node:fs/promises";
import type { ClusterRecord, NodeRecord } from "../../model/cluster-record.ts";
import type { NamedText } from "../../model/backend.ts";
import { consoleOutputs } from "../console-outputs.ts";
import { machineFiles } from "./machine-files.ts";

const mostBytes = 1_000_000;

/** What each node wrote to its serial console: firmware, bootloader, kernel, services. */
export async function clusterConsoleOutput(cluster: ClusterRecord, signal: AbortSignal): Promise<readonly NamedText[]> {
  return consoleOutputs(cluster.nodes, async (node) => consoleOutput(cluster.directory, node), signal);
}

export async function consoleOutput(directory: string, node: NodeRecord): Promise<string> {
  await using file = await open(machineFiles(directory, node).console, "r");
  const { size } = await file.stat();
  const buffer = Buffer.alloc(Math.min(size, mostBytes));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, size - buffer.length);
  return buffer.toString("utf8", 0, bytesRead);
}
