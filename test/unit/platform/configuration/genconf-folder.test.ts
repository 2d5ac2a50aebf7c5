import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { chmod, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { readGenconfFolder } from "../../../../src/platform/configuration/configuration-file.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const { signal } = new AbortController();
test("all files are listed with their modes, sub-folders included", async () => {
  await using folder = await scratchFolder();
  await Bun.write(join(folder.path, "ca.crt"), "cert");
  await Bun.write(join(folder.path, ".hidden"), "");
  await Bun.write(join(folder.path, "deep/er/check.sh"), "#!/bin/sh\n");
  await chmod(join(folder.path, "ca.crt"), 0o640);
  await chmod(join(folder.path, ".hidden"), 0o600);
  await chmod(join(folder.path, "deep/er/check.sh"), 0o755);
  await symlink("../ca.crt", join(folder.path, "deep/link.crt"));
  await mkdir(join(folder.path, "empty"));
  const read = await readGenconfFolder(folder.path, signal);
  expect(read.problems).toBeUndefined();
  expect(read.value?.map(({ target, mode, sizeBytes }) => [target, mode, sizeBytes])).toEqual([
    [".hidden", 0o600, 0],
    ["ca.crt", 0o640, 4],
    ["deep/er/check.sh", 0o755, 10],
    ["deep/link.crt", 0o640, 4],
  ]);
  expect(read.value?.every((file) => file.source.startsWith("/"))).toBe(true);
});

test("its own ip-detect will be executable", async () => {
  await using folder = await scratchFolder();
  await Bun.write(join(folder.path, "ip-detect"), "#!/bin/sh\n");
  await chmod(join(folder.path, "ip-detect"), 0o600);
  const { value } = await readGenconfFolder(folder.path, signal);
  expect(value).toMatchObject([{ target: "ip-detect", mode: 0o755 }]);
});

test("a folder, a file or a link named config.yaml is refused only at the top", async () => {
  await using folder = await scratchFolder();
  await Bun.write(join(folder.path, "sub/config.yaml"), "");
  expect((await readGenconfFolder(folder.path, signal)).problems).toBeUndefined();
  await Bun.write(join(folder.path, "config.yaml"), "");
  expect((await readGenconfFolder(folder.path, signal)).problems?.map(unmarked)).toEqual([
    `${folder.path}/config.yaml is not allowed: pass your configuration with \`extraConfig\``,
  ]);
});

test("links that leave the folder, lead nowhere or go in circles are all told together", async () => {
  await using folder = await scratchFolder();
  await mkdir(join(folder.path, "sub"));
  await symlink("/etc/passwd", join(folder.path, "a-out"));
  await symlink("missing", join(folder.path, "b-dangling"));
  await symlink("..", join(folder.path, "sub/c-circle"));
  expect((await readGenconfFolder(folder.path, signal)).problems).toEqual([
    `${folder.path}/a-out is a symbolic link to /etc/passwd, outside ${folder.path}.`,
    `${folder.path}/b-dangling is a broken symbolic link.`,
    `${folder.path}/sub/c-circle is a symbolic link to one of its parent folders.`,
  ]);
});

test("what is neither file nor folder is refused", async () => {
  await using folder = await scratchFolder();
  await Bun.$`mkfifo ${folder.path}/pipe`;
  expect((await readGenconfFolder(folder.path, signal)).problems).toEqual([
    `${folder.path}/pipe is neither a file nor a folder.`,
  ]);
});

test.each([
  ["/nonexistent/folder", "/nonexistent/folder does not exist"],
  ["/etc/passwd", "/etc/passwd is not a folder"],
])("%s is refused", async (path, problem) => {
  expect(await readGenconfFolder(path, signal)).toEqual({ problems: [problem] });
});
