import type { NamedText } from "../contract.ts";
import { open } from "node:fs/promises";
import { type ClusterRecord, nodeReference, type NodeRecord } from "../../model/cluster-record.ts";
import { consoleOutputs } from "../shared/node-scripts.ts";
import { readConsole } from "./machines/console-sink.ts";
import { machineFiles } from "./machines/machine-process.ts";

const mostBytes = 1_000_000;

/** Returns what each node wrote to its serial console (firmware, bootloader, kernel, services), and what its QEMU wrote to stderr. */
export async function clusterConsoleOutput(cluster: ClusterRecord, signal: AbortSignal): Promise<readonly NamedText[]> {
  const { nodes, directory } = cluster;
  const [consoles, logs] = await Promise.all([
    consoleOutputs(nodes, async (node) => consoleOutput(directory, node), signal),
    Promise.all(nodes.map(async (node) => qemuLog(directory, node))),
  ]);
  return [...consoles, ...logs.filter(({ text }) => text !== "")];
}

async function qemuLog(directory: string, node: NodeRecord): Promise<NamedText> {
  const text = await endOf(machineFiles(directory, node).qemuLog).catch(() => "");
  return { name: `${nodeReference(node)}.qemu.txt`, text };
}

export const consoleOutput = async (directory: string, node: NodeRecord): Promise<string> =>
  readConsole(machineFiles(directory, node).folder, mostBytes);

/** A QEMU may write a lot, so this reads only the end. */
async function endOf(path: string): Promise<string> {
  await using file = await open(path, "r");
  const { size } = await file.stat();
  const buffer = Buffer.alloc(Math.min(size, mostBytes));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, size - buffer.length);
  return buffer.toString("utf8", 0, bytesRead);
}
