import type { NamedText } from "../../contract.ts";
import type { ClusterRecord, NodeRecord } from "../../../model/cluster-record.ts";
import { consoleOutputs } from "../../console-outputs.ts";
import { isFailure } from "../api/api-errors.ts";
import type { CloudApi } from "../api/api.ts";

/** The API has no request for several machines, and it throttles clients that send more than this many requests in a row. */
const mostMachines = 100;

/** Collects what each machine wrote to its console until the signal is aborted. */
export async function clusterConsoleOutput(
  api: CloudApi,
  cluster: ClusterRecord,
  signal: AbortSignal,
): Promise<readonly NamedText[]> {
  const troubledFirst = cluster.nodes.toSorted((a, b) => Number(isRunning(a)) - Number(isRunning(b)));
  return consoleOutputs(
    troubledFirst.slice(0, mostMachines),
    async (node) => consoleOutput(api, node.id, signal),
    signal,
  );
}

function isRunning(node: NodeRecord): boolean {
  return node.state === "running";
}

async function consoleOutput(api: CloudApi, id: string, signal: AbortSignal): Promise<string> {
  try {
    return await ask(api, { InstanceId: id, Latest: true }, signal);
  } catch (error) {
    // Older machine types can only return what they buffered earlier.
    if (!isFailure(error, "not-for-this-type")) throw error;
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
