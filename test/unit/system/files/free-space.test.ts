import { expect, test } from "bun:test";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { readCheckout } from "../../../../src/platform/checkout/checkout.ts";
import { readGenconfFolder } from "../../../../src/platform/configuration/configuration-file.ts";
import { listCopyToMaster } from "../../../../src/platform/configuration/install-configuration.ts";
import { readPlatformFolder } from "../../../../src/platform/folder/read-folder.ts";
import { freeSpaceProblem } from "../../../../src/system/files/private-file.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
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
  expect(await freeSpaceProblem(`${file}s`, 1)).toBe(`${file}s does not exist.`);
});

test("a folder that can't be reached is not called absent, whoever looks for it", async () => {
  await using folder = await scratchFolder();
  const loop = join(folder.path, "loop");
  await symlink("loop", loop);
  const problem = `${loop} cannot be opened: too many symbolic links encountered`;
  expect(await freeSpaceProblem(loop, 1)).toBe(`${problem}.`);
  expect(await readPlatformFolder(loop, neverAborted)).toEqual({ problems: [problem] });
  expect(await readCheckout(loop, neverAborted)).toEqual({ problems: [`${problem}.`] });
  expect(await readGenconfFolder(loop, neverAborted)).toEqual({ problems: [problem] });
  expect(await listCopyToMaster({ source: loop, target: "/x" }, neverAborted)).toEqual({
    problems: [problem],
  });
});
