import type { Backend } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { encryptionFor } from "../../cluster/export-cluster.ts";
import { type SnapshotName, saveSnapshot } from "../../cluster/snapshots.ts";
import type { SnapshotFile } from "../../model/snapshot.ts";

export interface FileToSave extends SnapshotName, Omit<SnapshotFile, "encrypt"> {
  /** Public keys; without any, the file isn't encrypted. */
  readonly recipients: readonly string[];
}

/**
 * Writes a snapshot to a file, and prints a note that the file contains secrets. Throws the errors
 * of `saveSnapshot`.
 */
export async function saveToFile(
  backend: Backend<unknown>,
  { clusterId, name, recipients, ...target }: FileToSave,
  { progress, environment, signal }: Context,
): Promise<void> {
  const encrypt = encryptionFor(recipients, environment);
  await saveSnapshot(backend, { clusterId, name, file: { ...target, encrypt } }, signal);
  if (encrypt !== undefined) return;
  progress.note(
    `${target.path} holds the secrets of the cluster and the keys of its nodes. Only you can read it; encrypt it before you share it.`,
  );
}
