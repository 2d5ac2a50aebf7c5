import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import {
  type FileHandle,
  access,
  chmod,
  constants,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  rename,
  rm,
  stat,
  statfs,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { ClusterError, messageOf, systemReason } from "../../errors.ts";
import { ownUserId } from "../own-user.ts";
import { type HeldFolder, holdFolder, isSameFolder, removeHeldFolder } from "./held-folder.ts";

/** Creates a folder and its missing parents, readable by this user alone. */
export async function makePrivateFolder(path: string): Promise<void> {
  const [, above] = /^(.+?)\/cluster-e2e\//.exec(`${path}/`) ?? [];
  if (above !== undefined && ownUserId() === 0) await makeAsOwner(above);
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(path, 0o700);
}

/**
 * Under sudo, HOME may be another user's, who could no longer use a `.local` or `.cache` that is
 * root's. That user's own rights make it, so that no link which the user puts there leads root
 * elsewhere. If this fails, root makes it.
 */
async function makeAsOwner(folder: string): Promise<void> {
  if (dirname(folder) === folder || (await statIfPresent(folder)) !== undefined) return;
  await makeAsOwner(dirname(folder));
  const above = await statIfPresent(dirname(folder));
  if (above === undefined || above.uid === 0) return;
  const words = ["-m", "700", "--", basename(folder)];
  const { uid, gid } = above;
  spawnSync("/bin/mkdir", words, { uid, gid, cwd: dirname(folder), env: {}, stdio: "ignore" });
}

/**
 * Writes a file that only this user can read, atomically: it writes under another name, flushes to
 * disk, renames, and flushes the folder too. Once this resolves, the text survives a crash of the
 * program or the machine.
 */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomUUID()}.draft`;
  try {
    {
      await using file = await open(draft, "wx", 0o600);
      // A umask may take rights from this user too.
      await file.chmod(0o600);
      await file.writeFile(text);
      await file.sync();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {});
    // The errors of an open file, such as a full disk, don't name it.
    if (error instanceof Error && !("path" in error))
      Object.assign(error, { path, message: `${messageOf(error)} '${path}'` });
    throw error;
  }
  await syncFolder(dirname(path));
}

/**
 * What a file system answers that knows no flushing of folders, and what a folder does in which
 * this user may write but not look.
 */
const withoutSync = ["EINVAL", "ENOTSUP", "EACCES", "EPERM"];

/** Flushes a folder to disk, where that is possible, so that a rename in it survives a crash of the machine. */
export async function syncFolder(path: string): Promise<void> {
  try {
    await using folder = await open(path, "r");
    await folder.sync();
  } catch (error) {
    if (!withoutSync.includes(errorCode(error) ?? "")) throw error;
  }
}

/**
 * Writes all bytes, at this position or at the current one. On a disk that is nearly full, a write
 * may be shorter than asked for and still succeed. Only the next one fails.
 */
export async function writeAll(
  output: FileHandle,
  bytes: Uint8Array,
  position?: number,
): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const at = position === undefined ? null : position + done;
    done += (await output.write(bytes, done, bytes.length - done, at)).bytesWritten;
  }
}

const plainFileName = /^[A-Za-z0-9_][\w-]*(\.[\w-]+)*$/;
const longestName = 128;

/** Whether a name, wherever it comes from, is a plain file name on every system and so stays inside its folder. */
export const isPlainFileName = (name: string): boolean =>
  name.length <= longestName && plainFileName.test(name);

/** Writes a file into a folder, like `writePrivateFile`. Rejects names that might lead out of the folder. */
export async function writePrivateFileIn(
  folder: string,
  name: string,
  text: string,
): Promise<void> {
  if (!isPlainFileName(name)) throw new TypeError(`Not a plain file name: ${JSON.stringify(name)}`);
  await writePrivateFile(join(folder, name), text);
}

/** A folder of this user alone. Disposing of it deletes it with all its contents. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
}

const prefix = "cluster-e2e-";

/**
 * Whether a temporary folder is still there. If it was removed meanwhile, another user may have
 * made one with that name.
 */
export async function isOwnTemporaryFolder(path: string): Promise<boolean> {
  await using held = await holdOwnTemporaryFolder(path);
  return held !== undefined;
}

export async function holdOwnTemporaryFolder(path: string): Promise<HeldFolder | undefined> {
  if (!isAbsolute(path) || !new RegExp(`^${prefix}[A-Za-z0-9]{6}$`).test(basename(path)))
    return undefined;
  const held = await holdFolder(path).catch(() => undefined);
  if (held === undefined) return undefined;
  if (held.facts.uid === ownUserId() && (held.facts.mode & 0o022) === 0) return held;
  await held[Symbol.asyncDispose]();
  return undefined;
}

/** Creates a temporary folder inside `parent`, which must exist. */
export async function temporaryFolder(parent: string): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(parent, prefix));
  await chmod(path, 0o700);
  const made = await lstat(path);
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      await using held = await holdFolder(path);
      if (held !== undefined && isSameFolder(made, held.facts)) await removeHeldFolder(held, path);
    },
  };
}

/**
 * The longest path of a folder in which a temporary folder, a link in that and a socket behind the
 * link still have an address.
 */
const longestForSockets = 60;

/** Where temporary folders of sockets go: the system's temporary folder, unless its path is too long. */
export function folderForSockets(): string {
  const usual = tmpdir();
  return Buffer.byteLength(usual) > longestForSockets ? "/tmp" : usual;
}

/** Creates one in the system's temporary folder. Throws `machine-not-set-up` if that is impossible. */
export async function systemTemporaryFolder(parent = tmpdir()): Promise<TemporaryFolder> {
  try {
    return await temporaryFolder(parent);
  } catch (error) {
    throw new ClusterError(
      "machine-not-set-up",
      `Cannot create a temporary folder in ${parent}: ${systemReason(error)}.`,
      {
        hint: "Set TMPDIR to an existing folder that this user may write to.",
        facts: { folder: parent },
        cause: error,
      },
    );
  }
}

/**
 * Why `folder` has no room for `bytes` of temporary files, as a sentence for people; undefined if
 * it has. Only the space available to an unprivileged user counts.
 */
export async function freeSpaceProblem(folder: string, bytes: number): Promise<string | undefined> {
  const problem = await folderProblem(folder);
  if (problem !== undefined) return `${problem}.`;
  if (!(await isAccessible(folder, constants.W_OK | constants.X_OK)))
    return `Cannot write to the folder ${folder}.`;
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  return free >= bytes
    ? undefined
    : `${folder} has ${gigabytes(free)} GB of free space, but ${gigabytes(bytes)} GB are required.`;
}

export async function statIfPresent(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch {
    // A dangling link prevents the creation of the folder, although it has no target.
    return await lstat(path).catch(() => undefined);
  }
}

/** Throws `capacity-lacking` unless this user may write to the folder, and it has this much free space. */
export async function assertFreeSpace(
  folder: string,
  bytes: number,
  hint = "Free some space.",
): Promise<void> {
  const problem = await freeSpaceProblem(folder, bytes);
  if (problem !== undefined) throw new ClusterError("capacity-lacking", problem, { hint });
}

/** One decimal, rounded down, so that too little never looks like enough. */
export const gigabytes = (bytes: number): string => (Math.floor(bytes / 1e8) / 10).toFixed(1);

/**
 * Whether anything exists at this path, and this user has the rights of `mode`, such as
 * `constants.R_OK`; default: none.
 */
export async function isAccessible(path: string, mode: number = constants.F_OK): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  );
}

/** The names in a folder, none if it is missing. A folder that can't be read isn't empty: rejects then. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}

/** Whether a new file may replace what is at this path: a rename would replace anything else too, such as a device. */
export async function isFileOrAbsent(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isFile();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return true;
    throw error;
  }
}

/**
 * The code (`ENOENT`, `ECONNRESET`, …) of a runtime error. Bun puts it on the error itself, Node's
 * fetch on its cause.
 */
export function errorCode(error: unknown): string | undefined {
  for (const candidate of [error, error instanceof Error ? error.cause : undefined]) {
    if (candidate instanceof Error && "code" in candidate && typeof candidate.code === "string")
      return candidate.code;
  }
  return undefined;
}

/** Whether a file couldn't be written because the disk is full, or because this user's quota is used up. */
export const isDiskFull = (error: unknown): boolean =>
  ["ENOSPC", "EDQUOT"].includes(errorCode(error) ?? "");

/**
 * Why a path can't be looked at, as the end of a sentence. Behind a folder that is closed to this
 * user, something may well exist.
 */
export function unreachable(error: unknown): string {
  const code = errorCode(error);
  return code === "ENOENT" || code === "ENOTDIR"
    ? "does not exist"
    : `cannot be opened: ${systemReason(error)}`;
}

/** Why there is no folder at a path, as a sentence without its full stop; undefined if there is one. */
export const folderProblem = (path: string): Promise<string | undefined> =>
  stat(path).then(
    (information) => (information.isDirectory() ? undefined : `${path} is not a folder`),
    (error: unknown) => `${path} ${unreachable(error)}`,
  );

export const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (information) => information.isFile(),
    () => false,
  );

export const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (information) => information.isDirectory(),
    () => false,
  );
