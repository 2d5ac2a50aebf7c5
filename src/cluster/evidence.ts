import { join } from "node:path";
import type { Backend, NamedText, Surroundings } from "../backend/backend.ts";
import type { ConnectionPool } from "../ssh/pool.ts";
import { writePrivateFile } from "../system/private-file.ts";
import type { ClusterRecord } from "./record.ts";

export interface EvidenceRequest {
  readonly cluster: ClusterRecord;
  readonly connections: ConnectionPool;
  /** The creation's folder; the files go into it. */
  readonly directory: string;
}

/** Of the time that evidence gets as a whole, what a node's logs may take. */
const nodeLogsLimitMs = 15_000;

/**
 * Saves what tells why a creation failed: console output from the backend, installer and cloud-init logs from the nodes that answer. Best
 * effort: what cannot be had is left out, and nothing of this fails. Resolves with the folder.
 */
export async function saveEvidence(
  backend: Pick<Backend<unknown>, "evidence">,
  { cluster, connections, directory }: EvidenceRequest,
  { progress }: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  using step = progress.start("Save evidence");
  const { collectNodeLogs } = await import("../platform/node-logs.ts");
  const gathered = await Promise.allSettled([
    backend.evidence(cluster, signal),
    collectNodeLogs(cluster, connections, { limitMs: nodeLogsLimitMs }, signal),
  ]);
  const texts: readonly NamedText[] = gathered.flatMap((outcome) =>
    outcome.status === "fulfilled" ? outcome.value : [],
  );
  for (const { name, text } of texts) await writePrivateFile(join(directory, name), progress.mask(text));
  step.done();
  if (texts.length > 0) progress.note(`Logs of the nodes: ${directory}`);
}
