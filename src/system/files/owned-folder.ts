import { readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  identifyThisProcess,
  isProcessAlive,
  parseProcessIdentity,
} from "../processes/process-identity.ts";
import {
  type TemporaryFolder,
  isDiskFull,
  isOwnTemporaryFolder,
  systemTemporaryFolder,
  temporaryFolder,
} from "./private-file.ts";
import { readOwnJson } from "./read-text.ts";

/**
 * Creates a temporary folder inside `parent` for as long as this program runs at most, and removes those that killed programs of this user and computer
 * have left there.
 */
export async function ownedFolder(parent: string): Promise<TemporaryFolder> {
  await removeLeftFolders(parent);
  return await owned(await temporaryFolder(parent));
}

/** Creates one in the system's temporary folder. Throws `machine-not-set-up` if that is impossible. */
export async function ownedTemporaryFolder(parent = tmpdir()): Promise<TemporaryFolder> {
  await removeLeftFolders(parent);
  return await owned(await systemTemporaryFolder(parent));
}

const ownerIn = (folder: string): string => join(folder, "owner.json");

async function owned(folder: TemporaryFolder): Promise<TemporaryFolder> {
  try {
    await writeFile(ownerIn(folder.path), JSON.stringify((await identifyThisProcess()) ?? {}));
    return folder;
  } catch (error) {
    // A link may still fit. Without an owner, the folder stays if this program is killed.
    if (isDiskFull(error)) return folder;
    await folder[Symbol.asyncDispose]();
    throw error;
  }
}

async function removeLeftFolders(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    const folder = join(parent, name);
    if (!(await isOwnTemporaryFolder(folder))) continue;
    const owner = await readOwnJson(ownerIn(folder), parseProcessIdentity);
    if (owner !== undefined && !(await isProcessAlive(owner)))
      await rm(folder, { recursive: true, force: true }).catch(() => {});
  }
}
