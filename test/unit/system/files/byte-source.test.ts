import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { byteSource, gather, sha256OfFile } from "../../../../src/system/files/byte-source.ts";
import { IncompleteArchive } from "../../../../src/system/files/tar.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("only regular files have a checksum: a pipe or a device would be read for ever", async () => {
  await using scratch = await scratchFolder();
  const [pipe, file] = [join(scratch.path, "pipe"), join(scratch.path, "file")];
  await Bun.$`mkfifo ${pipe}`;
  for (const path of [pipe, "/dev/zero"])
    expect(await failureOf(sha256OfFile(path, neverAborted))).toMatchObject({ code: "EINVAL" });
  expect(await failureOf(sha256OfFile(scratch.path, neverAborted))).toMatchObject({
    code: "EISDIR",
  });
  await writeFile(file, "abc");
  expect(await sha256OfFile(file, neverAborted)).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
});

const chunks = async function* (...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
};
const textOf = (parts: readonly Uint8Array[]): readonly string[] =>
  parts.map((part) => Buffer.from(part).toString());

test("a source gives the pieces that are asked for, however its chunks are cut", async () => {
  const source = byteSource(chunks("ab", "", "cdef", "gh"));
  expect(String(await source.take(3))).toBe("abc");
  expect(String(await source.take(0))).toBe("");
  expect(textOf(await Array.fromAsync(source.stream(4)))).toEqual(["def", "g"]);
  expect(await failureOf(source.take(2))).toBeInstanceOf(IncompleteArchive);
});

test.each([
  [4, true],
  [3, false],
])("whether four bytes end within %d: %p", async (limit, expected) => {
  const source = byteSource(chunks("ab", "c", "def"));
  await source.take(2);
  expect(await source.endsWithin(limit)).toBe(expected);
});

test("small chunks are gathered, in order, and the rest comes last", async () => {
  const gathered = await Array.fromAsync(gather(chunks("a", "bc", "defgh", "i", "j"), 3));
  expect(textOf(gathered)).toEqual(["abc", "defgh", "ij"]);
  expect(await Array.fromAsync(gather(chunks("abc"), 3))).toHaveLength(1);
});

test.each([1, 2_000_000])("the sum of a file of %d bytes is given up on a signal", async (size) => {
  await using scratch = await scratchFolder();
  const path = join(scratch.path, "file");
  await writeFile(path, Buffer.alloc(size));
  const aborted = AbortSignal.abort(new Error("enough"));
  expect(await failureOf(sha256OfFile(path, aborted))).toMatchObject({ name: "AbortError" });
});
