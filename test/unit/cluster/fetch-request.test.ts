import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { parseFetchRequest } from "../../../src/cluster/fetch.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

test.each([
  ["/var/log/a.log:a.log", "/var/log/a.log", "a.log"],
  ["report-12:30.xml:report.xml", "report-12:30.xml", "report.xml"],
  ["out/report.xml:results/", "out/report.xml", "results/report.xml"],
  ["out/:results/", "out/", "results/out"],
  ["/var/log/x:new/er/x", "/var/log/x", "new/er/x"],
  [".:all", ".", "all"],
  ["x:file", "x", "file"],
])("%s is understood", async (text, remote, local) => {
  await using folder = await scratchFolder();
  await mkdir(join(folder.path, "results"));
  await writeFile(join(folder.path, "file"), "");
  expect(await parseFetchRequest(text, folder.path)).toEqual({
    value: { remote, local: join(folder.path, local) },
  });
});

test.each([
  ["x", "use the form"],
  [":x", "use the form"],
  ["x:", "use the form"],
  ["x:a\nb", "control characters"],
  ["..:results/", "names no file"],
  ["/:results/", "names no file"],
  ["x:results", "already exists"],
  ["x:.", "already exists"],
  ["results:./", "already exists"],
  ["x:device", "device is not a regular file"],
  ["x:link", "link is not a regular file"],
  ["x:file/y", "file is not a folder"],
  ["x:file/y/z", "cannot read the folder"],
])("%j is rejected before the command runs", async (text, reason) => {
  await using folder = await scratchFolder();
  await mkdir(join(folder.path, "results"));
  await writeFile(join(folder.path, "file"), "");
  await symlink("file", join(folder.path, "link"));
  await Bun.$`mkfifo ${join(folder.path, "device")}`.quiet();
  expect((await parseFetchRequest(text, folder.path)).problems?.join()).toContain(reason);
});
