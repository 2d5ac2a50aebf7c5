import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { Backend } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { encrypt } from "../../cluster/export-cluster.ts";
import { createSnapshot } from "../../cluster/snapshots.ts";
import { messageOf } from "../../errors.ts";
import { saveToFile } from "../saved-machines/save-file.ts";
import type { OnceInput } from "./once-options.ts";

type Saving = Pick<OnceInput, "clusterId" | "saveOnFailure" | "recipients" | "withoutBase">;

/** Finds out before anything is created whether age is there and accepts the recipients. Throws what `encrypt` does. */
export async function assertSavable(
  { saveOnFailure, recipients }: Pick<Saving, "saveOnFailure" | "recipients">,
  { environment, signal }: Context,
): Promise<void> {
  if (saveOnFailure !== undefined && recipients.length > 0) await encrypt("", recipients, environment, signal);
}

/**
 * Saves a cluster as it stands, if that is wanted, with a snapshot that goes when the cluster goes. Never throws: what has failed before matters more. An
 * interrupt ends it.
 */
export async function saveFailedCluster(
  backend: Backend<unknown>,
  { clusterId, saveOnFailure: path, recipients, withoutBase }: Saving,
  context: Context,
): Promise<void> {
  const { signal, progress, programName } = context;
  if (path === undefined || signal.aborted) return;
  const name = "failed";
  try {
    await mkdir(dirname(path), { recursive: true });
    await createSnapshot(backend, { clusterId, name }, signal);
    await saveToFile(backend, { clusterId, name, path, recipients, withoutBase, replaces: true }, context);
    const file = recipients.length === 0 ? path : "DECRYPTED_FILE";
    progress.note(`Bring the cluster back as it was: ${programName} create --from ${file}`);
  } catch (error) {
    if (!signal.aborted) progress.warn(`The cluster could not be saved: ${messageOf(error)}`);
  }
}
