import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";

/** Files up to this size are read in one piece: a stream for each of thousands of small files takes longer than reading their contents. */
const streamedFromBytes = 1_000_000;

/** The SHA-256 hash of a file's contents, in lower-case hexadecimal. */
export async function sha256OfFile(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  if ((await stat(path)).size < streamedFromBytes) hash.update(await readFile(path, { signal }));
  else await pipeline(createReadStream(path), hash, { signal });
  return hash.digest("hex");
}

/** Hashes of files that don't change in the meantime. Each file is read once, however many callers ask. */
export type FileSums = (path: string, signal: AbortSignal) => Promise<string>;

export function createFileSums(): FileSums {
  const known = new Map<string, Promise<string>>();
  return async (path, signal) => {
    const sum = known.get(path) ?? sha256OfFile(path, signal);
    known.set(path, sum);
    return sum;
  };
}
