import { constants, stat } from "node:fs/promises";
import { basename, dirname, posix, resolve } from "node:path";
import { quoted } from "../../errors.ts";
import { type Checked, problem } from "../../system/checked.ts";
import { errorCode } from "../../system/error-code.ts";
import { isAccessible } from "../../system/files/is-accessible.ts";

/** A file or folder to bring back from a node. */
export interface FetchRequest {
  /** Absolute, or relative to the command's working directory. */
  readonly remote: string;
  /** The absolute path of the new file or folder. No folder has this path. */
  readonly local: string;
}

/**
 * Parses `remote:local`, which is split at the last colon. A local path that ends with `/` means "into this folder,
 * under the same name". Finds out now what would prevent the file from being written after the command, which may take
 * hours.
 */
export async function parseFetchRequest(text: string, cwd: string): Promise<Checked<FetchRequest>> {
  const colon = text.lastIndexOf(":");
  const [remote, given] = [text.slice(0, Math.max(colon, 0)), text.slice(colon + 1)];
  if (remote === "" || given === "") return problem(`${quoted(text)}: use the form /remote/path:/local/path`);
  if (/\p{Cc}/u.test(text)) return problem(`${quoted(text)}: a path cannot contain control characters`);
  const name = posix.basename(remote);
  if (given.endsWith("/") && ["", ".", ".."].includes(name)) {
    return problem(`${quoted(text)}: the remote path names no file; write a local path without / at the end`);
  }
  return checkTarget({ remote, local: resolve(cwd, given, given.endsWith("/") ? name : "") });
}

/** Finds out what would prevent the local file or folder, an absolute path, from being written. */
export async function checkTarget(request: FetchRequest): Promise<Checked<FetchRequest>> {
  const lack = await targetProblem(request.local);
  return lack === undefined ? { value: request } : problem(lack);
}

async function targetProblem(local: string): Promise<string | undefined> {
  const target = await stat(local).catch(() => undefined);
  if (target?.isDirectory() === true) {
    return `the folder ${local} already exists; remove it, or end the local path with / to fetch into it`;
  }
  return parentProblem(dirname(local));
}

/** Missing folders will be created, so the nearest existing one counts. */
async function parentProblem(folder: string): Promise<string | undefined> {
  try {
    if (!(await stat(folder)).isDirectory()) return `${folder} is not a folder`;
  } catch (error) {
    if (errorCode(error) === "ENOENT" && basename(folder) !== "") return parentProblem(dirname(folder));
    return `cannot read the folder ${folder} (${errorCode(error)})`;
  }
  const isWritable = await isAccessible(folder, constants.W_OK | constants.X_OK);
  return isWritable ? undefined : `cannot write to the folder ${folder}`;
}
