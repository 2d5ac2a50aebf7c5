import type { Backend } from "../../backend/contract.ts";
import type { Runtime } from "../../system/runtime.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { collectLogs } from "./save-logs.ts";
import { saveTexts } from "./save-texts.ts";

export interface FailureLogsRequest {
  readonly cluster: ClusterRecord;
  readonly connections: ConnectionPool;
  /** The creation's folder, where the files go. */
  readonly directory: string;
}

/** The part of the time for saving failure logs that the nodes' logs may take. */
const nodesLimitMs = 15_000;

/** Saves logs that explain why a creation failed. Best effort: it skips what it can't get, and never throws. */
export async function saveFailureLogs(
  backend: Pick<Backend<unknown>, "consoleOutput">,
  { cluster, connections, directory }: FailureLogsRequest,
  { progress }: Pick<Runtime, "progress">,
  signal: AbortSignal,
): Promise<void> {
  using step = progress.start("Save failure logs");
  const texts = await collectLogs(backend, { cluster, connections, limitMs: nodesLimitMs }, signal);
  const files = await saveTexts(directory, texts, progress);
  step.done();
  if (files.length > 0) progress.note(`The nodes' logs are in ${directory}`);
}
