import { readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError } from "../../errors.ts";
import { identifyThisProcess, isProcessAlive, parseProcessIdentity } from "../processes/process-identity.ts";
import { isDiskFull, isOwnTemporaryFolder, temporaryFolder } from "./private-file.ts";
import { readOwnJson } from "./read-text.ts";

/** Where a file or folder is written before it is renamed to its target. Disposing of it removes whatever is still there. */
export interface Draft extends AsyncDisposable {
  readonly path: string;
}

/** Returns the error for a file or folder that the user wants and that can't be written. A full disk is no wrong path. */
export function cannotWrite(path: string, reason: string, cause?: unknown): ClusterError {
  const message = `Cannot write ${path}: ${reason}.`;
  return isDiskFull(cause)
    ? new ClusterError("machine-not-set-up", message, { hint: "Free some space, or name another disk.", cause })
    : new ClusterError("bad-usage", message, {
        hint: "Pass a file in an existing folder that you may write to.",
        cause,
      });
}

const ownerIn = (folder: string): string => join(folder, "owner.json");

/**
 * Makes a folder for a draft beside its target: every other name there may be the user's. Removes the drafts that killed programs of this computer
 * have left there.
 */
export async function draftBeside(target: string): Promise<Draft> {
  const parent = dirname(target);
  await removeLeftDrafts(parent);
  const folder = await temporaryFolder(parent);
  try {
    await writeFile(ownerIn(folder.path), JSON.stringify((await identifyThisProcess()) ?? {}));
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
  return { ...folder, path: join(folder.path, "draft") };
}

async function removeLeftDrafts(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    const folder = join(parent, name);
    if (!(await isOwnTemporaryFolder(folder))) continue;
    const owner = await readOwnJson(ownerIn(folder), parseProcessIdentity);
    if (owner !== undefined && !(await isProcessAlive(owner)))
      await rm(folder, { recursive: true, force: true }).catch(() => {});
  }
}
