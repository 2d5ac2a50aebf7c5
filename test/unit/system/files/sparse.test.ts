import { readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { packBlocks, unpackBlocks, writeSparse } from "../../../../src/system/files/sparse.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const block = 64 * 1024;
const refused = (): Error => new Error("refused");

async function* inPieces(bytes: Buffer, length: number): AsyncGenerator<Buffer> {
  for (let place = 0; place < bytes.length; place += length) yield bytes.subarray(place, place + length);
}

test("a mostly empty file is packed without its empty blocks, and unpacked as it was, with holes", async () => {
  await using folder = await scratchFolder();
  const [from, to] = [join(folder.path, "from"), join(folder.path, "to")];
  const contents = Buffer.alloc(40 * block);
  for (const place of [0, block - 1, 17 * block, 39 * block + 5]) contents[place] = 7;
  await writeFile(from, contents);
  const packed = Buffer.concat(await Array.fromAsync(packBlocks(from)));
  expect(packed.length).toBe(3 * (block + 4));
  for (const length of [1_000, block, packed.length]) {
    await unpackBlocks({ path: to, bytes: contents.length }, inPieces(packed, length), refused);
    expect((await readFile(to)).equals(contents)).toBe(true);
    const { blocks, mode } = await stat(to);
    expect(blocks * 512).toBeLessThanOrEqual(3 * block);
    expect(mode & 0o777).toBe(0o600);
  }
});

test("a file that is empty, or only holes, is packed to nothing", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "file");
  await writeFile(path, "");
  expect(await Array.fromAsync(packBlocks(path))).toEqual([]);
  await truncate(path, 5 * block);
  expect(await Array.fromAsync(packBlocks(path))).toEqual([]);
});

test("a block that is not in the file, and a part of a block, are refused", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "file");
  const frame = Buffer.alloc(block + 4, 1);
  frame.writeUInt32LE(2);
  const unpack = async (bytes: Buffer) => unpackBlocks({ path, bytes: 2 * block }, inPieces(bytes, 1_000), refused);
  expect(await failureOf(unpack(frame))).toMatchObject({ message: "refused" });
  frame.writeUInt32LE(1);
  await unpack(frame);
  expect(await failureOf(unpack(frame.subarray(1)))).toMatchObject({ message: "refused" });
});

test("chunks of zeros become holes, also at the end", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "file");
  const contents = Buffer.alloc(40 * block);
  for (const place of [block, 20 * block, 37 * block + 5]) contents[place] = 7;
  await writeSparse(path, inPieces(contents, block));
  expect((await readFile(path)).equals(contents)).toBe(true);
  const { blocks, mode } = await stat(path);
  expect(blocks * 512).toBeLessThanOrEqual(3 * block);
  expect(mode & 0o777).toBe(0o600);
});

test("a failed write is thrown before all chunks are read, or at their end", async () => {
  const [many, few] = [100, 2];
  const read = { chunks: 0 };
  const counted = async function* (count: number): AsyncGenerator<Buffer> {
    for (let chunk = 0; chunk < count; chunk += 1) {
      read.chunks += 1;
      yield Buffer.alloc(block, 1);
    }
  };
  expect(await failureOf(writeSparse("/dev/full", counted(many)))).toMatchObject({ code: "ENOSPC" });
  expect(read.chunks).toBeLessThan(many);
  expect(await failureOf(writeSparse("/dev/full", counted(few)))).toMatchObject({ code: "ENOSPC" });
});
