import { resolve } from "node:path";
import { encrypt, encryptionFor, exportCluster, parseHandOver } from "../cluster/export-cluster.ts";
import { importCluster } from "../cluster/import-cluster.ts";
import { saveSnapshot } from "../cluster/snapshots.ts";
import { ClusterError } from "../errors.ts";
import { readArguments, required, text as textCheck } from "../model/read-arguments.ts";
import { type SaveOptions, signalOf } from "./call-options.ts";
import {
  type ClusterBackend,
  type OpenCluster,
  assertBackend,
  findForLibrary,
} from "./open-cluster.ts";

export async function exportForLibrary(
  { backend, record, runtime }: OpenCluster,
  recipients: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  const text = await exportCluster(backend, record.id, signal);
  return recipients.length === 0 ? text : encrypt(text, recipients, runtime.environment, signal);
}

export async function importForLibrary<Options>(
  clusters: ClusterBackend<Options>,
  text: string,
  signal: AbortSignal,
): Promise<OpenCluster> {
  assertBackend(clusters);
  readArguments({ text }, { text: required(textCheck) });
  const handOver = await parseHandOver(text, "the text");
  const backend = await clusters.open(signal);
  const { scope } = backend;
  if (scope !== undefined && scope.name !== handOver.region) {
    throw new ClusterError(
      "bad-usage",
      `The cluster is in ${handOver.region}, but the backend is for ${scope.name}.`,
      {
        hint: `Pass a backend for the region ${handOver.region}.`,
        facts: { region: handOver.region },
      },
    );
  }
  const { id } = await importCluster({ ...clusters.settings().runtime, signal }, backend, handOver);
  return findForLibrary(clusters, id, signal);
}

interface SaveRequest extends SaveOptions {
  readonly name: string;
  readonly file: string;
}

export async function saveForLibrary(
  { backend, record, runtime }: OpenCluster,
  { name, file, withoutBase = false, replace = false, recipients = [], ...options }: SaveRequest,
): Promise<void> {
  readArguments({ file }, { file: required(textCheck) });
  const target = {
    path: resolve(file),
    withoutBase,
    replaces: replace,
    encrypt: encryptionFor(recipients, runtime.environment),
  };
  await saveSnapshot(backend, { clusterId: record.id, name, file: target }, signalOf(options));
}
