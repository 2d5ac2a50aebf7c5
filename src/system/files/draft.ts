import { readdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import * as read from "../../model/reader.ts";
import { identifyThisProcess, isProcessAlive, parseProcessIdentity } from "../processes/process-identity.ts";
import { isOwnTemporaryFolder, temporaryFolder } from "./private-file.ts";
import { readOwnJson } from "./read-text.ts";

/** Where a file or folder is written before it is renamed to its target. Disposing of it removes whatever is still there. */
export interface Draft extends AsyncDisposable {
  readonly path: string;
}

const ownerIn = (folder: string): string => join(folder, "owner.json");

const parseOwner = read.object({ process: parseProcessIdentity, target: read.string });

/**
 * Makes a folder for a draft beside its target: every other name there may be the user's. Removes the drafts of the same target that killed programs
 * of this computer have left.
 */
export async function draftBeside(target: string): Promise<Draft> {
  const [parent, name] = [dirname(target), basename(target)];
  await removeLeftDrafts(parent, name);
  const folder = await temporaryFolder(parent);
  try {
    await writeFile(ownerIn(folder.path), JSON.stringify({ process: await identifyThisProcess(), target: name }));
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
  return { ...folder, path: join(folder.path, "draft") };
}

async function removeLeftDrafts(parent: string, target: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const folder = join(parent, name);
    if (!(await isOwnTemporaryFolder(folder))) continue;
    const owner = await readOwnJson(ownerIn(folder), parseOwner);
    if (owner?.target === target && !(await isProcessAlive(owner.process)))
      await rm(folder, { recursive: true, force: true });
  }
}
