import type { Backend } from "../../model/backend.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import type { ConnectionPool } from "../../ssh/connection/pool.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { collectLogs } from "./save-logs.ts";
import { saveTexts } from "./save-texts.ts";

export interface EvidenceRequest {
  readonly cluster: ClusterRecord;
  readonly connections: ConnectionPool;
  /** The creation's folder; the files go into it. */
  readonly directory: string;
}

/** Of the time that evidence gets as a whole, what a node's logs may take. */
const nodesLimitMs = 15_000;

/** Saves what tells why a creation failed. Best effort: what cannot be had is left out, and nothing of this fails. */
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
