import { expect, test } from "bun:test";
import { mkdir, readdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isPlainFileName, writePrivateFileIn } from "../../../../src/system/files/private-file.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { hostileOutputs } from "../../../support/hostile-output.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test.each(["master_0.install.log", "public_agent_12.no-logs.txt", "id_ed25519"])("%s is a plain file name", (name) => {
  expect(isPlainFileName(name)).toBe(true);
});

test.each([
  "",
  ".",
  "..",
  ".bashrc",
  "a..b",
  "a.",
  "a/b.txt",
  "/a.txt",
  "..\\a.txt",
  "a.txt\n",
  "a\0.txt",
  "C:a.txt",
  "a.txt:stream",
  "-a.txt",
  "\u0430.txt",
  `${"a".repeat(200)}.txt`,
])("%j is none", (name) => {
  expect(isPlainFileName(name)).toBe(false);
});

test("5000 hostile names: one that is a plain file name means a file in the folder", () => {
  for (const text of hostileOutputs(21, 5000)) {
    for (const name of [text, `a.${text}`, `${text}.txt`, `master_0.${text}`]) {
      if (isPlainFileName(name)) expect(dirname(resolve("/folder", name))).toBe("/folder");
    }
  }
});

test("nothing is written under another name", async () => {
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, "logs");
  expect(await failureOf(writePrivateFileIn(folder, "../x.txt", "text"))).toBeInstanceOf(TypeError);
  expect(await readdir(scratch.path)).toEqual([]);
});

test("a file that can't be written leaves nothing", async () => {
  await using scratch = await scratchFolder();
  await mkdir(join(scratch.path, "taken"));
  expect(await failureOf(writePrivateFileIn(scratch.path, "taken", "text"))).toHaveProperty("code", "EISDIR");
  expect(await readdir(scratch.path)).toEqual(["taken"]);
});
