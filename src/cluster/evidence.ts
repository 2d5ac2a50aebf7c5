import { join } from "node:path";
import type { Backend, Surroundings } from "../backend/backend.ts";
import type { ConnectionPool } from "../ssh/pool.ts";
import { writePrivateFile } from "../system/private-file.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { collectLogs } from "./save-logs.ts";

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
  backend: Pick<Backend<unknown>, "evidence">,
  { cluster, connections, directory }: EvidenceRequest,
  { progress }: Pick<Surroundings, "progress">,
  signal: AbortSignal,
): Promise<void> {
  using step = progress.start("Save evidence");
  const texts = await collectLogs(backend, { cluster, connections, limitMs: nodesLimitMs }, signal).catch(() => []);
  for (const { name, text } of texts) await writePrivateFile(join(directory, name), progress.mask(text));
  step.done();
  if (texts.length > 0) progress.note(`Logs of the nodes: ${directory}`);
}
