import { lstat } from "node:fs/promises";
import { ClusterError, messageOf } from "../../errors.ts";
import { errorCode } from "../../system/error-code.ts";
import { writePrivateFile } from "../../system/files/private-file.ts";

/** Writes a file that only this user can read, atomically. Throws `bad-usage` if it can't be written, or something else than a file is there. */
export async function saveExport(path: string, text: string): Promise<void> {
  try {
    if (await isFileOrAbsent(path)) return await writePrivateFile(path, text);
  } catch (error) {
    throw notSaved(path, messageOf(error), error);
  }
  throw notSaved(path, "it is not a regular file", undefined);
}

/** The file would replace anything else too, such as a device. */
async function isFileOrAbsent(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isFile();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return true;
    throw error;
  }
}

const notSaved = (path: string, reason: string, cause: unknown): ClusterError =>
  new ClusterError("bad-usage", `Cannot write ${path}: ${reason}.`, {
    hint: "Pass a file in an existing folder that you may write to.",
    cause,
  });
