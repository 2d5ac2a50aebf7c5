import { readFile } from "node:fs/promises";
import { type ClusterRecord, nodeReference, type NodeRecord } from "../../model/cluster-record.ts";
import type { NamedText } from "../backend.ts";
import { consoleOutputs } from "../console-outputs.ts";
import { machineFiles } from "./machine-files.ts";

const mostCharacters = 1_000_000;

/** What each node wrote to its serial console (firmware, bootloader, kernel, services), and its QEMU to stderr. */
export async function evidence(cluster: ClusterRecord, signal: AbortSignal): Promise<readonly NamedText[]> {
  const { nodes, directory } = cluster;
  const [consoles, logs] = await Promise.all([
    consoleOutputs(nodes, async (node) => consoleOutput(directory, node), signal),
    Promise.all(nodes.map(async (node) => qemuLog(directory, node))),
  ]);
  return [...consoles, ...logs.filter(({ text }) => text !== "")];
}

async function qemuLog(directory: string, node: NodeRecord): Promise<NamedText> {
  const text = await readFile(machineFiles(directory, node).qemuLog, "utf8").catch(() => "");
  return { name: `${nodeReference(node)}.qemu.txt`, text: text.slice(-mostCharacters) };
}

export async function consoleOutput(directory: string, node: NodeRecord): Promise<string> {
  return (await readFile(machineFiles(directory, node).console, "utf8")).slice(-mostCharacters);
}
