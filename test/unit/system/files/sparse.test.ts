import { readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { packBlocks, unpackBlocks, writeSparse } from "../../../../src/system/files/sparse.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const block = 64 * 1024;
const refused = (): Error => new Error("refused");

async function* inPieces(bytes: Buffer, length: number): AsyncGenerator<Buffer> {
  for (let place = 0; place < bytes.length; place += length)
    yield bytes.subarray(place, place + length);
}

test("a mostly empty file is packed without its empty blocks, and unpacked as it was, with holes", async () => {
  await using folder = await scratchFolder();
  const [from, to] = [join(folder.path, "from"), join(folder.path, "to")];
  const contents = Buffer.alloc(40 * block);
  for (const place of [0, block - 1, 17 * block, 38 * block + 5]) contents[place] = 7;
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

test("zeros fill up the last block, also after full ones", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "file");
  await writeFile(path, Buffer.alloc(16 * block + 5, 7));
  const packed = Buffer.concat(await Array.fromAsync(packBlocks(path)));
  expect(packed.length).toBe(17 * (block + 4));
  const last = Buffer.alloc(block);
  expect(packed.subarray(-block).equals(last.fill(7, 0, 5))).toBe(true);
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
  const unpack = async (bytes: Buffer) =>
    unpackBlocks({ path, bytes: 2 * block }, inPieces(bytes, 1_000), refused);
  expect(await failureOf(unpack(frame))).toMatchObject({ message: "refused" });
  frame.writeUInt32LE(1);
  await unpack(frame);
  for (const damaged of [frame.subarray(1), Buffer.concat([frame, Buffer.alloc(1)])])
    expect(await failureOf(unpack(damaged))).toMatchObject({ message: "refused" });
});

test("chunks of zeros become holes, also at the end", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "file");
  const contents = Buffer.alloc(40 * block);
  for (const place of [block, 20 * block, 35 * block + 5]) contents[place] = 7;
  // The longest that a cluster's file is unpacked to.
  const longest = 4 * block;
  for (const length of [block, longest]) {
    await writeSparse(path, inPieces(contents, length));
    expect((await readFile(path)).equals(contents)).toBe(true);
    const { blocks, mode } = await stat(path);
    expect(blocks * 512).toBeLessThanOrEqual(3 * length);
    expect(mode & 0o777).toBe(0o600);
  }
});

test("a failed write is thrown before all chunks are read, or at their end", async () => {
  const many = 100;
  const read = { chunks: 0 };
  const counted = async function* (count: number): AsyncGenerator<Buffer> {
    for (let chunk = 0; chunk < count; chunk += 1) {
      read.chunks += 1;
      yield Buffer.alloc(block, 1);
    }
  };
  expect(await failureOf(writeSparse("/dev/full", counted(many)))).toMatchObject({
    code: "ENOSPC",
  });
  expect(read.chunks).toBeLessThan(many);
  expect(await failureOf(writeSparse("/dev/full", counted(1)))).toMatchObject({ code: "ENOSPC" });
  const frame = Buffer.alloc(block + 4);
  const unpacking = unpackBlocks(
    { path: "/dev/full", bytes: block },
    inPieces(frame, frame.length),
    refused,
  );
  expect(await failureOf(unpacking)).toMatchObject({ code: "ENOSPC" });
});
