/** Packs files that are mostly empty, such as a machine's memory, because processing their zeros would take most of the time. */
import { open } from "node:fs/promises";
import { writeAll } from "./private-file.ts";

const blockBytes = 64 * 1024;
const headBytes = 4;
const frameBytes = headBytes + blockBytes;
const blocksAtOnce = 16;
const zeros = Buffer.alloc(blockBytes);

/** Yields the number (32 bits, little-endian) and the bytes of each block that isn't empty. Zeros fill up the last one. */
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
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = Buffer.concat([rest, chunk]);
    for (; rest.length >= frameBytes; rest = rest.subarray(frameBytes)) {
      const offset = rest.readUInt32LE() * blockBytes;
      if (offset >= bytes) throw failure();
      await writeAll(file, rest.subarray(headBytes, frameBytes), offset);
    }
  }
  if (rest.length > 0) throw failure();
  await file.truncate(bytes);
}
