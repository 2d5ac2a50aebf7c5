import { expect, test } from "bun:test";
import { join } from "node:path";
import { freeSpaceProblem } from "../../../../src/system/files/private-file.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("a folder with room is no problem", async () => {
  await using folder = await scratchFolder();
  expect(await freeSpaceProblem(folder.path, 1)).toBeUndefined();
});

test("too little room is told in numbers", async () => {
  await using folder = await scratchFolder();
  expect(await freeSpaceProblem(folder.path, 1e18)).toMatch(
    /^\/.* has \d+\.\d GB of free space, but 1000000000\.0 GB are required\.$/,
  );
});

test("what is no folder is told", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "file");
  await Bun.write(file, "");
  expect(await freeSpaceProblem(file, 1)).toBe(`${file} is not a folder.`);
  expect(await freeSpaceProblem(`${file}s`, 1)).toBe(`The folder ${file}s does not exist.`);
});
