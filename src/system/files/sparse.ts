/**
 * Files that are mostly empty, such as a machine's memory or its disk: processing their zeros would
 * take most of the time.
 */
import { type FileHandle, open } from "node:fs/promises";
import { writeAll } from "./private-file.ts";

const blockBytes = 64 * 1024;
const headBytes = 4;
const frameBytes = headBytes + blockBytes;
const blocksAtOnce = 16;
const zeros = Buffer.alloc(blockBytes);

/**
 * Yields the number (32 bits, little-endian) and the bytes of each block that isn't empty. Zeros
 * fill up the last one.
 */
export async function* packBlocks(path: string): AsyncGenerator<Uint8Array, void, undefined> {
  await using file = await open(path, "r");
  const buffer = Buffer.alloc(blocksAtOnce * blockBytes);
  for (let first = 0; ; first += blocksAtOnce) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, first * blockBytes);
    if (bytesRead === 0) return;
    buffer.fill(0, bytesRead);
    const frames: Uint8Array[] = [];
    for (let index = 0; index < blocksAtOnce; index += 1) {
      const block = buffer.subarray(index * blockBytes, (index + 1) * blockBytes);
      if (block.equals(zeros)) continue;
      const head = Buffer.alloc(headBytes);
      head.writeUInt32LE(first + index);
      frames.push(head, block);
    }
    if (frames.length > 0) yield Buffer.concat(frames);
  }
}

/** Writes a file of this size (0600) from such blocks. Throws the failure if they don't fit. */
export async function unpackBlocks(
  { path, bytes }: { readonly path: string; readonly bytes: number },
  chunks: AsyncIterable<Uint8Array>,
  failure: () => Error,
): Promise<void> {
  await using file = await open(path, "w", 0o600);
  await using writer = createWriter(file);
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk]);
    for (; rest.length >= frameBytes; rest = rest.subarray(frameBytes)) {
      const offset = rest.readUInt32LE() * blockBytes;
      if (offset >= bytes) throw failure();
      await writer.write(rest.subarray(headBytes, frameBytes), offset);
    }
  }
  if (rest.length > 0) throw failure();
  await writer.finish();
  await file.truncate(bytes);
}

const noBytes = Buffer.alloc(256 * 1024);

/** Writes a file that only this user can read. Long runs of zeros take no space on the disk. */
export async function writeSparse(path: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  await using file = await open(path, "w", 0o600);
  await using writer = createWriter(file);
  let offset = 0;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += noBytes.length) {
      const piece = chunk.subarray(at, at + noBytes.length);
      if (noBytes.compare(piece, 0, piece.length, 0, piece.length) !== 0)
        await writer.write(piece, offset + at);
    }
    offset += chunk.length;
  }
  await writer.finish();
  await file.truncate(offset);
}

const mostWrites = 16;

/**
 * Writes while its caller prepares the next bytes. Disposal waits for writes that have begun, after
 * which the file may be closed.
 */
function createWriter(file: FileHandle) {
  const pending: Promise<void>[] = [];
  const failures: unknown[] = [];
  const throwFailure = (): void => {
    if (failures.length > 0) throw failures[0];
  };
  return {
    /** The bytes must stay as they are. Throws if an earlier write has failed. */
    write: async (bytes: Uint8Array, position: number) => {
      pending.push(
        writeAll(file, bytes, position).catch((error: unknown) => void failures.push(error)),
      );
      if (pending.length === mostWrites) await pending.shift();
      throwFailure();
    },
    /** Throws if a write has failed. */
    finish: async () => {
      await Promise.all(pending);
      throwFailure();
    },
    [Symbol.asyncDispose]: async () => void (await Promise.all(pending)),
  };
}
