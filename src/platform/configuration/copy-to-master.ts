import { outside } from "../../outside-text.ts";
import { isAccessible } from "../../system/files/is-accessible.ts";
import { constants, stat } from "node:fs/promises";
import { isAbsolute, posix } from "node:path";
import type { Checked } from "../../system/checked.ts";
import { problem } from "../../system/checked.ts";
import { listFiles } from "../../system/files/list-files.ts";
import type { FileToCopy } from "./genconf-folder.ts";

export interface CopyToMaster {
  /** Absolute path on this machine. */
  readonly source: string;
  /** Absolute path on the masters; a trailing `/` means "into this folder". */
  readonly target: string;
}

/** Parses `/absolute/local/path:/remote/path`. It splits at the last `:/`, so that a local path may contain one. */
export function parseCopyToMaster(text: string): Checked<CopyToMaster> {
  const colon = text.lastIndexOf(":/");
  if (colon < 0) {
    const reason = text.includes(":")
      ? "the path on the master must be absolute"
      : "use the form /local/path:/remote/path";
    return problem(`${outside(text)}: ${reason}`);
  }
  const source = text.slice(0, colon);
  if (!isAbsolute(source)) return problem(`${outside(text)}: the local path must be absolute`);
  return { value: { source, target: posix.normalize(text.slice(colon + 1)) } };
}

/** Lists the files of one `--copy-to-master`: a single file, or all files of a folder, whose contents go into the target folder. */
export async function listCopyToMaster(
  { source, target }: CopyToMaster,
  signal: AbortSignal,
): Promise<Checked<readonly FileToCopy[]>> {
  const information = await stat(source).catch(() => undefined);
  if (information === undefined) return problem(`${source} does not exist`);
  if (information.isDirectory()) return listFolder(source, target, signal);
  if (!information.isFile()) return problem(`${source} is neither a file nor a folder`);
  if (!(await isAccessible(source, constants.R_OK))) return problem(`this user may not read ${source}`);
  const place = target.endsWith("/") ? target + posix.basename(source) : target;
  return { value: [{ source, target: place, mode: information.mode & 0o777, sizeBytes: information.size }] };
}

async function listFolder(
  source: string,
  target: string,
  signal: AbortSignal,
): Promise<Checked<readonly FileToCopy[]>> {
  const listed = await listFiles(source, { boundary: source, isSkipped: () => false }, signal);
  if (listed.problems !== undefined) return listed;
  return {
    value: listed.value.map(({ source: file, path, mode, sizeBytes }) => ({
      source: file,
      target: posix.join(target, path),
      mode,
      sizeBytes,
    })),
  };
}
