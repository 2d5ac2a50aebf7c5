import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { pipeline } from "node:stream/promises";
import { isMapping } from "../../../system/checked.ts";
import { writePrivateFile } from "../../../system/files/private-file.ts";
import type { Sum } from "./find-sum.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { parseJson } from "../../../system/parse-json.ts";

/** What was found when a stored image was last read as a whole. */
export interface ImageVerification {
  readonly sum: Sum;
  /** See `identityOf`. */
  readonly identity: string;
}

const recordPath = (path: string): string => `${path}.verified`;

/** Changes whenever somebody writes to the file or replaces it: nobody but root can set the time of a file's last change. */
export async function identityOf(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
  return [dev, ino, size, mtimeNs, ctimeNs].join(":");
}

export async function hashOf(path: string, algorithm: Sum["algorithm"], signal: AbortSignal): Promise<string> {
  const hash = createHash(algorithm);
  await pipeline(createReadStream(path), hash, { signal });
  return hash.digest("hex");
}

export async function recordVerification(path: string, verification: ImageVerification): Promise<void> {
  await writePrivateFile(recordPath(path), `${JSON.stringify({ schemaVersion: 1, ...verification })}\n`);
}

/** Returns `undefined` if there is no record, or if others may have written it: the store may have been open to them before. */
export async function readVerification(path: string): Promise<ImageVerification | undefined> {
  try {
    const { mode, uid } = await lstat(recordPath(path));
    if ((mode & 0o022) !== 0 || uid !== userInfo().uid) return undefined;
    return parseVerification(parseJson(await readOwnText(recordPath(path))));
  } catch {
    return undefined;
  }
}

function parseVerification(found: unknown): ImageVerification | undefined {
  if (!isMapping(found) || found["schemaVersion"] !== 1 || !isMapping(found["sum"])) return undefined;
  const { identity, sum } = found;
  const { algorithm, hex } = sum;
  if (algorithm !== "sha256" && algorithm !== "sha512") return undefined;
  return typeof hex === "string" && typeof identity === "string" ? { sum: { algorithm, hex }, identity } : undefined;
}
