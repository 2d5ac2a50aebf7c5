import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { constants, open } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { notRegular } from "./read-text.ts";
import { IncompleteArchive } from "./tar.ts";

/**
 * Reads a stream piece by piece. Throws `IncompleteArchive` if the stream ends within a piece.
 * Disposing of it closes the stream.
 */
export interface ByteSource extends AsyncDisposable {
  /** Returns exactly this many bytes; they should be few. */
  take(count: number): Promise<Buffer>;
  /** Yields exactly this many bytes, in chunks as they arrive. */
  stream(count: number): AsyncGenerator<Uint8Array, void, undefined>;
  /** Reads on to the end. Resolves with false, without having read everything, if more than `limit` bytes follow. */
  endsWithin(limit: number): Promise<boolean>;
}

export function byteSource(chunks: AsyncIterable<Uint8Array>): ByteSource {
  const iterator = chunks[Symbol.asyncIterator]();
  const state: { rest: Uint8Array } = { rest: new Uint8Array() };

  /** Returns the next bytes, at most `most`; undefined at the end. */
  const next = async (most: number): Promise<Uint8Array | undefined> => {
    while (state.rest.length === 0) {
      const result = await iterator.next();
      if (result.done === true) return undefined;
      state.rest = result.value;
    }
    const piece = state.rest.subarray(0, most);
    state.rest = state.rest.subarray(piece.length);
    return piece;
  };

  async function* stream(count: number): AsyncGenerator<Uint8Array, void, undefined> {
    for (let left = count; left > 0;) {
      const piece = await next(left);
      if (piece === undefined) throw new IncompleteArchive();
      left -= piece.length;
      yield piece;
    }
  }

  return {
    stream,
    take: async (count) => {
      const taken: Uint8Array[] = [];
      for await (const chunk of stream(count)) taken.push(chunk);
      return Buffer.concat(taken);
    },
    endsWithin: async (limit) => {
      for (let left = limit; ;) {
        const piece = await next(Infinity);
        if (piece === undefined) return true;
        left -= piece.length;
        if (left < 0) return false;
      }
    },
    [Symbol.asyncDispose]: async () => {
      await iterator.return?.();
    },
  };
}

/**
 * Yields the same bytes in chunks of at least `leastBytes`, except the last one. Thousands of small
 * chunks are slow.
 */
export async function* gather(
  source: AsyncIterable<Uint8Array>,
  leastBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const pending: Uint8Array[] = [];
  const size = { bytes: 0 };
  for await (const chunk of source) {
    pending.push(chunk);
    size.bytes += chunk.length;
    if (size.bytes < leastBytes) continue;
    yield Buffer.concat(pending.splice(0));
    size.bytes = 0;
  }
  if (pending.length > 0) yield Buffer.concat(pending);
}

/**
 * Detects damage to a value that travels as JSON: it depends on no spaces, and proves nothing about
 * who wrote it. In lower-case hexadecimal.
 */
export const sha256OfJson = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value)).digest("hex");

/** The SHA-256 hash of a regular file's contents, in lower-case hexadecimal. */
export const sha256OfFile = async (path: string, signal: AbortSignal): Promise<string> =>
  hashOfFile(path, "sha256", signal);

/** Likewise, by another algorithm. Throws the system's error, also for anything but a regular file. */
export const hashOfFile = async (
  path: string,
  algorithm: "sha256" | "sha512",
  signal: AbortSignal,
): Promise<string> => (await readHash(path, algorithm, signal)).hex;

/** Likewise, with what the system says of the very file that was read, whatever has its name by now. */
export async function readHash(
  path: string,
  algorithm: "sha256" | "sha512",
  signal: AbortSignal,
): Promise<{ readonly hex: string; readonly information: BigIntStats }> {
  // Opening a pipe would wait until somebody writes to it, and nothing ends that wait.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const information = await file.stat({ bigint: true });
  if (!information.isFile()) throw notRegular(path, information.isDirectory());
  const hash = createHash(algorithm);
  await pipeline(file.createReadStream({ autoClose: false }), hash, { signal });
  return { hex: hash.digest("hex"), information };
}
