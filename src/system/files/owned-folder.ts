import { readdir, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ClusterError } from "../../errors.ts";
import { ownUserId } from "../own-user.ts";
import {
  identifyThisProcess,
  isProcessAlive,
  parseProcessIdentity,
} from "../processes/process-identity.ts";
import {
  type TemporaryFolder,
  holdOwnTemporaryFolder,
  isDiskFull,
  systemTemporaryFolder,
  temporaryFolder,
} from "./private-file.ts";
import { type HeldFolder, holdFolder, removeHeldFolder } from "./held-folder.ts";
import { readOwnJson } from "./read-text.ts";

/**
 * Creates a temporary folder inside `parent` for as long as this program runs at most, and removes
 * those that killed programs of this user and computer have left there.
 */
export async function ownedFolder(parent: string): Promise<OwnedFolder> {
  await removeLeftFolders(parent);
  return await owned(await temporaryFolder(parent));
}

/** Creates one in the system's temporary folder. Throws `machine-not-set-up` if that is impossible. */
export async function ownedTemporaryFolder(parent = tmpdir()): Promise<OwnedFolder> {
  await removeLeftFolders(parent);
  return await owned(await systemTemporaryFolder(parent));
}

export interface OwnedFolder extends TemporaryFolder {
  /** A path that leads to this folder also if somebody else gives its name to another one; see `HeldFolder`. */
  readonly held: string;
}

const ownerIn = (folder: string): string => join(folder, "owner.json");

async function owned(folder: TemporaryFolder): Promise<OwnedFolder> {
  const held = await holdFolder(folder.path);
  const dispose = async (): Promise<void> => {
    await held?.[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  };
  try {
    if (held === undefined || (await isForeign(held))) throw replaced(folder.path);
    const owner = JSON.stringify((await identifyThisProcess()) ?? {});
    await writeFile(ownerIn(held.path), owner, { flag: "wx" }).catch((error: unknown) => {
      // A link may still fit. Without an owner, the folder stays if this program is killed.
      if (!isDiskFull(error)) throw error;
    });
    return { path: folder.path, held: held.path, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** File systems with owners of their own: ext4, XFS, btrfs, tmpfs, overlayfs, ZFS. Others may show any. */
const withOwners = [0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1];

const isForeign = async ({ path, facts }: HeldFolder): Promise<boolean> =>
  facts.uid !== ownUserId() && withOwners.includes((await statfs(path)).type);

const replaced = (path: string): ClusterError =>
  new ClusterError("machine-not-set-up", `Somebody else has replaced ${path}.`, {
    hint: `Use a folder that only you can write to, or set the sticky bit of ${dirname(path)} (chmod +t).`,
    facts: { folder: path },
  });

async function removeLeftFolders(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    const path = join(parent, name);
    await using held = await holdOwnTemporaryFolder(path);
    if (held === undefined) continue;
    const owner = await readOwnJson(ownerIn(held.path), parseProcessIdentity);
    if (owner !== undefined && !(await isProcessAlive(owner)))
      await removeHeldFolder(held, path).catch(() => {});
  }
}
