import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { Backend, BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { encrypt } from "../../cluster/export-cluster.ts";
import { createSnapshot, deleteSnapshot } from "../../cluster/snapshots.ts";
import { messageOf } from "../../errors.ts";
import { quote } from "../../ssh/shell-text.ts";
import { scopeWords } from "../create/report-created.ts";
import { type FileToSave, saveToFile } from "../saved-machines/save-file.ts";
import { type CachedCluster, isCacheThere } from "./cached-cluster.ts";
import type { OnceInput } from "./once-options.ts";

type Saving = Pick<OnceInput, "clusterId" | "saveOnFailure" | "recipients" | "withoutBase">;

/**
 * Checks that age is installed and accepts the recipients, before anything is created. Throws the
 * errors of `encrypt`.
 */
export async function assertSavable(
  { saveOnFailure, recipients }: Pick<Saving, "saveOnFailure" | "recipients">,
  { environment, signal }: Context,
): Promise<void> {
  if (saveOnFailure !== undefined && recipients.length > 0)
    await encrypt("", recipients, environment, signal);
}

/**
 * Saves a cluster in its present state, if the user wants that. Returns the command that brings it
 * back; undefined if it was not saved. Never throws, because the earlier failure matters more.
 */
export async function saveFailedCluster(
  kind: BackendKind,
  backend: Backend<unknown>,
  input: Saving,
  context: Context,
): Promise<string | undefined> {
  const { clusterId, saveOnFailure: path, recipients, withoutBase } = input;
  if (path === undefined) return undefined;
  const saved = await trySaving(
    backend,
    { clusterId, name: "failed", path, recipients, withoutBase },
    context,
  );
  if (!saved) return undefined;
  const file = recipients.length === 0 ? quote([path]) : "DECRYPTED_FILE";
  const line = `${context.programName} create --from ${file}${scopeWords(kind, input)}`;
  context.progress.note(`Bring the cluster back as it was: ${line}`);
  return line;
}

/** Saves a cluster on which the platform has just become ready. Never throws: the command doesn't need the file. */
export async function saveForLater(
  backend: Backend<unknown>,
  clusterId: string,
  { path, snapshot: name }: CachedCluster,
  context: Context,
): Promise<void> {
  const file = { clusterId, name, path, recipients: [], withoutBase: false };
  const saved = await trySaving(backend, file, context, async () => isCacheThere(path));
  // The snapshot would take space while the command runs. It is removed with the cluster in any case.
  if (saved) await deleteSnapshot(backend, { clusterId, name }, context.signal).catch(() => {});
}

/** Creates a snapshot and writes it to a file. Resolves with whether the file was written. An interrupt ends it. */
async function trySaving(
  backend: Backend<unknown>,
  file: Omit<FileToSave, "replaces">,
  context: Context,
  mayReplace: () => Promise<boolean> = async () => true,
): Promise<boolean> {
  const { signal, progress } = context;
  if (signal.aborted) return false;
  try {
    await mkdir(dirname(file.path), { recursive: true });
    const replaces = await mayReplace();
    await createSnapshot(context, backend, file);
    await saveToFile(backend, { ...file, replaces }, context);
    return true;
  } catch (error) {
    if (!signal.aborted) progress.warn(`The cluster could not be saved: ${messageOf(error)}`);
    return false;
  }
}
