import { isAccessible } from "./is-accessible.ts";
import { constants, stat, statfs } from "node:fs/promises";

/**
 * Why `folder` has no room for `bytes` of temporary files, as a sentence for people; undefined if it has. Only the space available to an unprivileged
 * user counts.
 */
export async function freeSpaceProblem(folder: string, bytes: number): Promise<string | undefined> {
  const information = await stat(folder).catch(() => undefined);
  if (information === undefined) return `The folder ${folder} does not exist.`;
  if (!information.isDirectory()) return `${folder} is not a folder.`;
  if (!(await isAccessible(folder, constants.W_OK | constants.X_OK))) return `Cannot write to the folder ${folder}.`;
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  return free >= bytes
    ? undefined
    : `${folder} has ${gigabytes(free)} GB of free space, but ${gigabytes(bytes)} GB are required.`;
}

/** One decimal, rounded down, so that too little never looks like enough. */
const gigabytes = (bytes: number): string => (Math.floor(bytes / 1e8) / 10).toFixed(1);
