import { randomUUID } from "node:crypto";
import { chmod, mkdir, open, rename } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Creates a folder and its missing parents, readable by this user alone. */
export async function makePrivateFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(path, 0o700);
}

/**
 * Writes a file that only this user can read, atomically: it writes under another name, flushes to disk, renames, and flushes the folder too. Once
 * this resolves, the text survives a crash of the program or the machine.
 */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomUUID()}.draft`;
  const file = await open(draft, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const plainFileName = /^[A-Za-z0-9_][\w-]*(\.[\w-]+)*$/;
const longestName = 128;

/** Whether a name, wherever it comes from, is a plain file name on every system and so stays inside its folder. */
export const isPlainFileName = (name: string): boolean => name.length <= longestName && plainFileName.test(name);

/** Writes a file into a folder, like `writePrivateFile`. Rejects names that are not plain file names, so that none leads out of the folder. */
export async function writePrivateFileIn(folder: string, name: string, text: string): Promise<void> {
  if (!isPlainFileName(name)) throw new TypeError(`Not a plain file name: ${JSON.stringify(name)}`);
  await writePrivateFile(join(folder, name), text);
}
