import { createHash } from "node:crypto";
import {
  type Stats,
  closeSync,
  constants,
  fstatSync,
  openSync,
  read,
  readSync,
  readlinkSync,
} from "node:fs";
import { platform } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ClusterError, systemReason } from "../../errors.ts";
import { errorCode } from "./private-file.ts";

/** A regular file as it was when it was listed or checked: only this very file is read later. */
export interface FileFacts {
  /** Absolute, without symbolic links: the location of the contents. */
  readonly source: string;
  readonly device: number;
  readonly inode: number;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
}

/** `source` has been resolved, and the information is about that file. */
export const factsOf = (
  source: string,
  { dev, ino, size, mtimeMs }: Readonly<Record<"dev" | "ino" | "size" | "mtimeMs", number>>,
): FileFacts => ({
  source,
  device: dev,
  inode: ino,
  sizeBytes: size,
  modifiedMs: mtimeMs,
});

const chunkBytes = 256 * 1024;
/** Waiting for each answer takes four times as long as reading a small file. */
const smallBytes = 1_000_000;

/**
 * Yields the contents of a listed file: exactly `sizeBytes` bytes. Others may be able to write to
 * its folder. If they have put another file or a link in the place of the file, or of a folder
 * above it, or have changed it, this throws `transfer-failed`, and yields nothing from that other
 * file.
 */
export async function* readListed(file: FileFacts): AsyncGenerator<Uint8Array, void, undefined> {
  const fd = openListed(file);
  try {
    for (let at = 0; at < file.sizeBytes;) {
      const chunk = Buffer.allocUnsafeSlow(Math.min(chunkBytes, file.sizeBytes - at));
      const count =
        file.sizeBytes < smallBytes
          ? readSync(fd, chunk, { position: at })
          : await readAt(fd, chunk, at);
      if (count === 0) throw changed(file);
      at += count;
      yield chunk.subarray(0, count);
    }
    if (!isSame(file, fstatSync(fd))) throw changed(file);
  } catch (error) {
    throw errorCode(error) === undefined ? error : unreadable(file, error);
  } finally {
    closeSync(fd);
  }
}

function openListed(file: FileFacts): number {
  const fd = open(file);
  try {
    if (isSame(file, fstatSync(fd)) && isLocatedAt(fd, file.source)) return fd;
  } catch (error) {
    closeSync(fd);
    throw unreadable(file, error);
  }
  closeSync(fd);
  throw changed(file);
}

/** macOS: refuses a link in any place of a path (`O_NOFOLLOW_ANY` in its `fcntl.h`). It has no `/proc`. */
const noLinkAnywhere = 0x20000000;
const isMac = platform() === "darwin";
const noLink = isMac ? noLinkAnywhere : constants.O_NOFOLLOW;

/** Never waits for somebody who opens the other end of a pipe. */
function open(file: FileFacts): number {
  try {
    return openSync(file.source, constants.O_RDONLY | constants.O_NONBLOCK | noLink);
  } catch (error) {
    throw errorCode(error) === "ELOOP" ? changed(file) : unreadable(file, error);
  }
}

const isSame = ({ device, inode, sizeBytes, modifiedMs }: FileFacts, now: Stats): boolean =>
  now.isFile() &&
  now.dev === device &&
  now.ino === inode &&
  now.size === sizeBytes &&
  now.mtimeMs === modifiedMs;

/**
 * Linux reports where an open file is, whatever links led there. A name that is resolved again
 * could lead elsewhere each time.
 */
const isLocatedAt = (fd: number, path: string): boolean =>
  isMac || readlinkSync(`/proc/self/fd/${fd}`) === path;

async function readAt(fd: number, chunk: Buffer, position: number): Promise<number> {
  const done = Promise.withResolvers<number>();
  read(fd, chunk, 0, chunk.length, position, (error, count) => {
    if (error === null) done.resolve(count);
    else done.reject(error);
  });
  return done.promise;
}

const hint = "Try again while no other program changes that file or its folder.";

const changed = ({ source }: FileFacts): ClusterError =>
  new ClusterError(
    "transfer-failed",
    `${source} is no longer the file that was listed: it was changed or replaced.`,
    {
      hint,
      facts: { file: source },
    },
  );

const unreadable = ({ source }: FileFacts, cause: unknown): ClusterError =>
  new ClusterError("transfer-failed", `Cannot read ${source} any longer: ${systemReason(cause)}.`, {
    hint,
    facts: { file: source },
    cause,
  });

/** The SHA-256 hash of a listed file's contents, in lower-case hexadecimal. */
export async function sha256OfListed(file: FileFacts, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  // Small files are read at once. Between thousands of them, an interrupt gets its turn.
  await nextTurn();
  for await (const chunk of readListed(file)) {
    signal.throwIfAborted();
    hash.update(chunk);
  }
  return hash.digest("hex");
}

/** Hashes of listed files. Each file is read once, however many callers ask. */
export type FileSums = (file: FileFacts, signal: AbortSignal) => Promise<string>;

export function createFileSums(): FileSums {
  const known = new Map<string, Promise<string>>();
  return async (file, signal) => {
    const sum = known.get(file.source) ?? sha256OfListed(file, signal);
    known.set(file.source, sum);
    return sum;
  };
}
