import { encrypt, exportCluster, parseHandOver } from "../cluster/export-cluster.ts";
import { importCluster } from "../cluster/import-cluster.ts";
import { ClusterError } from "../errors.ts";
import {
  type Shape,
  listOf,
  optional,
  readArguments,
  required,
  signal as signalCheck,
  text as textCheck,
} from "../model/read-arguments.ts";
import { type ClusterBackend, type OpenCluster, assertBackend, findForLibrary } from "./open-cluster.ts";

export interface ExportOptions {
  /** Public keys (`age1…`, `ssh-…`) for which age, which must be installed, encrypts the text; default: it isn't encrypted. */
  readonly recipients?: readonly string[];
  readonly cancelSignal?: AbortSignal;
}

const shape: Shape<ExportOptions> = { recipients: optional(listOf(textCheck)), cancelSignal: optional(signalCheck) };

export const readExportOptions = (given: ExportOptions): ExportOptions => readArguments(given, shape);

/** See Cluster.export. */
export async function exportForLibrary(
  { backend, record, runtime }: OpenCluster,
  recipients: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  const text = await exportCluster(backend, record.id, signal);
  return recipients.length === 0 ? text : encrypt(text, recipients, runtime.environment, signal);
}

/** See Cluster.import. */
export async function importForLibrary<Options>(
  clusters: ClusterBackend<Options>,
  text: string,
  signal: AbortSignal,
): Promise<OpenCluster> {
  assertBackend(clusters);
  readArguments({ text }, { text: required(textCheck) });
  const handOver = await parseHandOver(text, "the text");
  const backend = await clusters.open(signal);
  const { place } = backend;
  if (place !== undefined && place.name !== handOver.region) {
    throw new ClusterError("bad-usage", `The cluster is in ${handOver.region}, but the backend is for ${place.name}.`, {
      hint: `Pass a backend for the region ${handOver.region}.`,
      facts: { region: handOver.region },
    });
  }
  const { id } = await importCluster(backend, handOver, clusters.settings().runtime, signal);
  return findForLibrary(clusters, id, signal);
}
