import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import {
  listCopyToMaster,
  parseCopyToMaster,
} from "../../../../src/platform/configuration/install-configuration.ts";
import { factsOfFile } from "../../../support/facts-of-file.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const { signal } = new AbortController();
test.each([
  [
    "/a/key.pem:/var/lib/x/custom_ca.key",
    { source: "/a/key.pem", target: "/var/lib/x/custom_ca.key" },
  ],
  ["/a:b:/c", { source: "/a:b", target: "/c" }],
  ["/a/with space:/c/", { source: "/a/with space", target: "/c/" }],
  ["/a:/c/../d//e", { source: "/a", target: "/d/e" }],
])("%s is read", (text, value) => {
  expect(parseCopyToMaster(text)).toEqual({ value });
});

test.each([
  ["a:/b", "a:/b: the local path must be absolute"],
  [":/b", ":/b: the local path must be absolute"],
  ["/a:b", "/a:b: the path on the master must be absolute"],
  ["/a:", "/a:: the path on the master must be absolute"],
  ["/a", "/a: use the form /local/path:/remote/path"],
  ["", ": use the form /local/path:/remote/path"],
])("%p is refused", (text, problem) => {
  expect(parseCopyToMaster(text).problems?.map(unmarked)).toEqual([problem]);
});

test("a file keeps its mode; a target that ends with / is a folder", async () => {
  await using folder = await scratchFolder();
  const source = join(folder.path, "ca.key");
  await Bun.write(source, "key");
  await chmod(source, 0o400);
  const file = { ...(await factsOfFile(source)), mode: 0o400 };
  expect(await listCopyToMaster({ source, target: "/var/x" }, signal)).toEqual({
    value: [{ ...file, target: "/var/x" }],
  });
  expect(await listCopyToMaster({ source, target: "/var/x/" }, signal)).toEqual({
    value: [{ ...file, target: "/var/x/ca.key" }],
  });
});

test("the contents of a folder come to stand in the target folder", async () => {
  await using folder = await scratchFolder();
  await Bun.write(join(folder.path, "one"), "1");
  await Bun.write(join(folder.path, "sub/two"), "22");
  const listed = await listCopyToMaster({ source: folder.path, target: "/srv/x" }, signal);
  expect(listed.value?.map((file) => [file.target, file.sizeBytes])).toEqual([
    ["/srv/x/one", 1],
    ["/srv/x/sub/two", 2],
  ]);
});

test("a source that isn't there is refused", async () => {
  expect(await listCopyToMaster({ source: "/nonexistent/key", target: "/x" }, signal)).toEqual({
    problems: ["/nonexistent/key does not exist"],
  });
});

test("a pipe is refused", async () => {
  await using folder = await scratchFolder();
  const source = join(folder.path, "pipe");
  await Bun.$`mkfifo ${source}`;
  expect(await listCopyToMaster({ source, target: "/x" }, signal)).toEqual({
    problems: [`${source} is neither a file nor a folder`],
  });
});
