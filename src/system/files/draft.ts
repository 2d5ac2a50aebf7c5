import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError, systemReason } from "../../errors.ts";
import { ownedFolder } from "./owned-folder.ts";
import { errorCode, isDiskFull, statIfPresent, writePrivateFile } from "./private-file.ts";

/**
 * Where a file or folder is written before it is renamed to its target. Disposing of it removes
 * whatever is still there.
 */
export interface Draft extends AsyncDisposable {
  readonly path: string;
}

/**
 * Returns the error for a file or folder that the user wants and that can't be written, for a
 * reason of ours or the system's error. A full disk is no wrong path.
 */
export function cannotWrite(path: string, reason: unknown): ClusterError {
  const cause = typeof reason === "string" ? undefined : reason;
  const message = `Cannot write ${path}: ${systemReason(reason)}.`;
  return isDiskFull(cause)
    ? new ClusterError("machine-not-set-up", message, {
        hint: "Free some space, or name another disk.",
        cause,
      })
    : new ClusterError("bad-usage", message, {
        hint: "Pass a file in an existing folder that you may write to.",
        cause,
      });
}

/** Writes a file that the user named, like `writePrivateFile`, and the folders that it lacks. */
export async function writeNamedFile(path: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writePrivateFile(path, text);
  } catch (error) {
    const isInFile = errorCode(error) === "EEXIST";
    throw cannotWrite(path, isInFile ? "a file is in the place of one of its folders" : error);
  }
}

/** About what the key and the logs of one creation take. */
const usualBytes = 128 * 1024;

/**
 * Why nothing can be written to the folder or, if it is missing, to the one in which it would be
 * created; undefined if it can. Tests by writing: modes don't reveal read-only file systems, and
 * root passes every permission check. `lackOf` tests a new folder there for more.
 */
export async function writeProblem(
  folder: string,
  lackOf: (trial: string) => Promise<string | undefined> = async () => undefined,
): Promise<
  { readonly text: string; readonly reason: string; readonly cause: unknown } | undefined
> {
  if ((await statIfPresent(folder)) === undefined && dirname(folder) !== folder)
    return writeProblem(dirname(folder), lackOf);
  const because = (reason: string, cause?: unknown) => ({
    text: `${folder}: ${reason}`,
    reason,
    cause,
  });
  try {
    // By its name, it could be somebody else's by now, with a link to a file of this user.
    await using trial = await ownedFolder(folder);
    // On a full disk, an empty folder can often still be created.
    await writeFile(join(trial.held, "trial"), Buffer.alloc(usualBytes), { flag: "wx" });
    const lack = await lackOf(trial.held);
    return lack === undefined ? undefined : because(lack);
  } catch (error) {
    return because(systemReason(error), error);
  }
}

/**
 * Makes a folder for a draft beside its target: every other name there may be the user's. Removes
 * the drafts that killed programs of this computer have left there.
 */
export async function draftBeside(target: string): Promise<Draft> {
  const folder = await ownedFolder(dirname(target));
  return { ...folder, path: join(folder.held, "draft") };
}
