import { close, open } from "node:fs";
import { constants, lstat, readdir, readlink, rm, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/**
 * Folders that stay the same whatever happens to their names. Where others may write to the folder
 * above, and it has no sticky bit, they may rename ours, and put a link or another folder of this
 * user in its place.
 */

/** A folder as it was when it was opened. */
export interface HeldFolder extends AsyncDisposable {
  /**
   * Linux: leads to this very folder until it is disposed of, in this process and in those that it
   * starts. Elsewhere, it is the folder's name.
   */
  readonly path: string;
  readonly facts: FolderFacts;
}

type FolderFacts = Readonly<Record<"dev" | "ino" | "uid" | "mode", number>>;

/** Opens the folder, unless something else has its name, or nothing. */
export async function holdFolder(path: string): Promise<HeldFolder | undefined> {
  if (!(await isFolderItself(path))) return undefined;
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  // A number, unlike a FileHandle, is never closed by the collector of garbage.
  const descriptor = await promisify(open)(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const process = await readlink("/proc/self").catch(() => "");
  const opened = `/proc/${process}/fd/${descriptor}`;
  const facts = await stat(opened).catch(() => undefined);
  const state = { isOpen: true };
  return {
    path: facts === undefined ? path : opened,
    facts: facts ?? (await lstat(path)),
    // Once closed, the number may be another file's.
    [Symbol.asyncDispose]: async () => {
      const { isOpen } = state;
      state.isOpen = false;
      if (isOpen) await promisify(close)(descriptor);
    },
  };
}

const isFolderItself = (path: string): Promise<boolean> =>
  lstat(path).then(
    (information) => information.isDirectory(),
    () => false,
  );

export const isSameFolder = (
  one: Pick<FolderFacts, "dev" | "ino">,
  other: Pick<FolderFacts, "dev" | "ino">,
): boolean => one.dev === other.dev && one.ino === other.ino;

/**
 * Removes a folder that was opened at this path, with everything in it. Another one that has its
 * name by now stays, unless it is empty.
 */
export async function removeHeldFolder(held: HeldFolder, path: string): Promise<void> {
  for (const name of await readdir(held.path))
    await rm(join(held.path, name), { recursive: true, force: true });
  if (await isFolderItself(path)) await rmdir(path);
}
