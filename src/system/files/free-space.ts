import { access, constants, stat, statfs } from "node:fs/promises";

/**
 * Why `folder` has no room for `bytes` of temporary files, as a sentence for people; undefined if it has. Only the space available to an unprivileged
 * user counts.
 */
export async function freeSpaceProblem(folder: string, bytes: number): Promise<string | undefined> {
  const information = await stat(folder).catch(() => undefined);
  if (information === undefined) return `The folder ${folder} does not exist.`;
  if (!information.isDirectory()) return `${folder} is not a folder.`;
  const isWritable = await access(folder, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isWritable) return `The folder ${folder} cannot be written to.`;
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  return free >= bytes ? undefined : `${folder} has ${gigabytes(free)} GB free, but ${gigabytes(bytes)} GB are needed.`;
}

/** One decimal, rounded down, so that too little never looks like enough. */
const gigabytes = (bytes: number): string => (Math.floor(bytes / 1e8) / 10).toFixed(1);
