import { resolve } from "node:path";
import { encryptionFor } from "../cluster/export-cluster.ts";
import { saveSnapshot } from "../cluster/snapshots.ts";
import { type Shape, flag, listOf, optional, readArguments, required, signal, text } from "../model/read-arguments.ts";
import type { Cancellation } from "./call-options.ts";
import type { OpenCluster } from "./open-cluster.ts";

/** How to write a snapshot to a file. */
export interface SaveOptions extends Cancellation {
  /** Leaves out the images of the nodes, which the other computer must have then; default: false. */
  readonly withoutBase?: boolean;
  /** Replaces an existing file; default: false. */
  readonly replace?: boolean;
  /** Encrypts the file with age, which must be installed, for the owners of these public keys. */
  readonly recipients?: readonly string[];
}

const shape: Shape<SaveOptions> = {
  withoutBase: optional(flag),
  replace: optional(flag),
  recipients: optional(listOf(text)),
  cancelSignal: optional(signal),
};

export const readSaveOptions = (given: SaveOptions): SaveOptions => readArguments(given, shape);

interface SaveRequest extends SaveOptions {
  readonly name: string;
  readonly file: string;
}

/** See Cluster.saveSnapshot. */
export async function saveForLibrary(
  { backend, record, runtime }: OpenCluster,
  { name, file, withoutBase = false, replace = false, recipients = [], cancelSignal }: SaveRequest,
): Promise<void> {
  readArguments({ file }, { file: required(text) });
  const encrypt = encryptionFor(recipients, runtime.environment);
  const target = { path: resolve(file), withoutBase, replaces: replace, encrypt };
  const inner = cancelSignal ?? new AbortController().signal;
  await saveSnapshot(backend, { clusterId: record.id, name, file: target }, inner);
}
