import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readFileStart } from "../../../../src/platform/artifact/artifact-head.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test.each([0, 10, 16_384, 16_385, 40_000])(
  "of a file of %d bytes, at most the first 16 KiB are read",
  async (size) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "a");
    const bytes = Buffer.from(Array.from({ length: size }, (_, index) => index % 251));
    await writeFile(path, bytes);
    const start = await readFileStart(path);
    expect(start.sizeBytes).toBe(size);
    expect(Buffer.from(start.bytes).equals(bytes.subarray(0, 16_384))).toBe(true);
  },
);

test.each([
  ["/nowhere/a", "there is no such folder or file.", "ENOENT"],
  ["/dev/null/a", "there is no such folder or file.", "ENOTDIR"],
  [`/${"a".repeat(300)}`, "name too long.", "ENAMETOOLONG"],
])("an artifact at %s can't be read, and it says why", async (path, reason, code) => {
  const failure = await failureOf(readFileStart(path));
  expect(failure).toMatchObject({ id: "artifact-unreachable", facts: { artifact: path, code } });
  expect(failure.message).toBe(`Cannot read ${path}: ${reason}`);
  expect(failure.hint).toContain("Pass the folder of a platform");
});
