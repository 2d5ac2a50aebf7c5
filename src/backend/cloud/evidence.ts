import { type ClusterRecord, nodeReference, type NodeRecord } from "../../cluster/record.ts";
import { runAtOnce } from "../../system/concurrency.ts";
import type { NamedText } from "../backend.ts";
import { failureCode } from "./api-errors.ts";
import type { CloudApi } from "./api.ts";

/** The API has no request for several machines, and throttles whoever asks for more than these in a row. */
const mostMachines = 100;
const atOnce = 8;

/** What each machine wrote to its console, as far as it can be had before the signal is aborted. */
export async function consoleOutputs(
  api: CloudApi,
  cluster: ClusterRecord,
  signal: AbortSignal,
): Promise<readonly NamedText[]> {
  const texts: NamedText[] = [];
  const collect = async (node: NodeRecord): Promise<void> => {
    if (signal.aborted) return;
    const text = await consoleOutput(api, node.id, signal).catch(() => undefined);
    if (text !== undefined && text !== "") texts.push({ name: `${nodeReference(node)}.console.txt`, text });
  };
  // Its own signal, never aborted: what was collected so far is worth having.
  const troubledFirst = cluster.nodes.toSorted((a, b) => Number(isWell(a)) - Number(isWell(b)));
  await runAtOnce(troubledFirst.slice(0, mostMachines), atOnce, collect, new AbortController().signal);
  return texts;
}

function isWell(node: NodeRecord): boolean {
  return node.state === "running";
}

async function consoleOutput(api: CloudApi, id: string, signal: AbortSignal): Promise<string> {
  try {
    return await ask(api, { InstanceId: id, Latest: true }, signal);
  } catch (error) {
    // Older machine types can tell only what they once buffered.
    if (failureCode(error) !== "UnsupportedOperation") throw error;
    return await ask(api, { InstanceId: id }, signal);
  }
}

async function ask(
  api: CloudApi,
  request: { readonly InstanceId: string; readonly Latest?: true },
  signal: AbortSignal,
): Promise<string> {
  const answer = await api.call("GetConsoleOutput", request, signal);
  return Buffer.from(answer.Output ?? "", "base64").toString("utf8");
}
