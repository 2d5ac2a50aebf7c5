import type { Backend } from "../../model/backend.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import type { ConnectionPool } from "../../ssh/connection/pool.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { collectLogs } from "./save-logs.ts";
import { saveTexts } from "./save-texts.ts";

export interface EvidenceRequest {
  readonly cluster: ClusterRecord;
  readonly connections: ConnectionPool;
  /** The creation's folder, where the files go. */
  readonly directory: string;
}

/** The part of the time for saving evidence that the nodes' logs may take. */
const nodesLimitMs = 15_000;

/** Saves logs that explain why a creation failed. Best effort: it skips what it can't get, and never throws. */
export async function saveEvidence(
  backend: Pick<Backend<unknown>, "consoleOutput">,
  { cluster, connections, directory }: EvidenceRequest,
  { progress }: Pick<Surroundings, "progress">,
  signal: AbortSignal,
): Promise<void> {
  using step = progress.start("Save evidence");
  const texts = await collectLogs(backend, { cluster, connections, limitMs: nodesLimitMs }, signal).catch(() => []);
  const files = await saveTexts(directory, texts, progress);
  step.done();
  if (files.length > 0) progress.note(`Logs of the nodes: ${directory}`);
}
