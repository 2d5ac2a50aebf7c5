import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import type { NamedText } from "../contract.ts";
import findAddress from "./find-address.sh" with { type: "text" };

/** A program that prints the address that these lines find. */
export const ipDetectOf = (...lines: readonly string[]): string =>
  `#!/bin/sh\n${lines.join("")}echo "$address"\n`;

/** Shell lines that set `address` to the node's private IPv4 address. */
export const privateAddressLines = shellText(findAddress);

/** Prints the node's private IPv4 address. */
export const ipDetect = ipDetectOf(privateAddressLines);

const atOnce = 8;

export async function consoleOutputs(
  nodes: ClusterRecord["nodes"],
  read: (node: NodeRecord) => Promise<string>,
  signal: AbortSignal,
): Promise<readonly NamedText[]> {
  const collect = async (node: NodeRecord): Promise<readonly NamedText[]> => {
    if (signal.aborted) return [];
    const text = await read(node).catch(() => "");
    return text === "" ? [] : [{ name: `${nodeReference(node)}.console.txt`, text }];
  };
  // A separate signal that is never aborted: the texts collected so far are worth keeping.
  return (await mapConcurrently(nodes, atOnce, collect, new AbortController().signal)).flat();
}
