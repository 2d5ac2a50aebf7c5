import { readFile } from "node:fs/promises";
import { type ClusterRecord, nodeReference } from "../../cluster/record.ts";
import type { NamedText } from "../backend.ts";
import { machineFiles } from "./machine-files.ts";

const mostCharacters = 1_000_000;

/** What each node wrote to its serial console: firmware, bootloader, kernel, services. */
export async function consoleOutputs(cluster: ClusterRecord): Promise<readonly NamedText[]> {
  const texts = await Promise.all(
    cluster.nodes.map(async (node) => {
      const text = await readFile(machineFiles(cluster.directory, node).console, "utf8").catch(() => "");
      return { name: `${nodeReference(node)}.console.txt`, text: text.slice(-mostCharacters) };
    }),
  );
  return texts.filter(({ text }) => text !== "");
}
