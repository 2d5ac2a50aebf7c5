import { expect, test } from "bun:test";
import {
  type FileHandle,
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import {
  errorCode,
  isAccessible,
  isDiskFull,
  isFile,
  isFileOrAbsent,
  isFolder,
  isOwnTemporaryFolder,
  isPlainFileName,
  makePrivateFolder,
  temporaryFolder,
  writeAll,
  writePrivateFileIn,
} from "../../../../src/system/files/private-file.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { hostileOutputs } from "../../../support/hostile-output.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test.each(["master_0.install.log", "public_agent_12.no-logs.txt", "id_ed25519", "a".repeat(128)])(
  "%s is a plain file name",
  (name) => {
    expect(isPlainFileName(name)).toBe(true);
  },
);

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
  "a".repeat(129),
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
  expect(await failureOf(writePrivateFileIn(scratch.path, "taken", "text"))).toHaveProperty(
    "code",
    "EISDIR",
  );
  expect(await readdir(scratch.path)).toEqual(["taken"]);
});

test.skipIf(process.geteuid?.() !== 0)(
  "what root needs above its folder in another user's home becomes that user's",
  async () => {
    await using scratch = await scratchFolder();
    await chown(scratch.path, 65534, 65534);
    const [local, state, own] = ["a", "a/b", "a/b/cluster-e2e"].map((name) =>
      join(scratch.path, name),
    ) as [string, string, string];
    await makePrivateFolder(join(own, "c"));
    const owners = [local, state, own].map(async (folder) => (await stat(folder)).uid);
    expect(await Promise.all(owners)).toEqual([65534, 65534, 0]);
  },
);

test("folders and files are private, also those that were not", async () => {
  await using scratch = await scratchFolder();
  const folder = join(scratch.path, "a", "b");
  await makePrivateFolder(folder);
  for (const made of [folder, dirname(folder)]) expect((await stat(made)).mode & 0o777).toBe(0o700);
  await chmod(folder, 0o755);
  await makePrivateFolder(folder);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  await writeFile(join(folder, "file"), "older", { mode: 0o644 });
  await writePrivateFileIn(folder, "file", "text");
  expect((await stat(join(folder, "file"))).mode & 0o777).toBe(0o600);
  expect([await readFile(join(folder, "file"), "utf8"), await readdir(folder)]).toEqual([
    "text",
    ["file"],
  ]);
});

test.each([
  [undefined, [null, null, null]],
  [10, [10, 13, 16]],
] as const)(
  "a disk that takes three bytes at a time gets all of them (from %p)",
  async (position, expected) => {
    const written: string[] = [];
    const positions: (number | null)[] = [];
    const write = async (bytes: Uint8Array, offset: number, length: number, at: number | null) => {
      const bytesWritten = Math.min(length, 3);
      written.push(Buffer.from(bytes).toString("utf8", offset, offset + bytesWritten));
      positions.push(at);
      return { bytesWritten };
    };
    await writeAll({ write } as unknown as FileHandle, Buffer.from("abcdefgh"), position);
    expect(written).toEqual(["abc", "def", "gh"]);
    expect(positions).toEqual([...expected]);
  },
);

test("a temporary folder is ours only by its name, and if nobody else can write to it", async () => {
  await using scratch = await scratchFolder();
  await using own = await temporaryFolder(scratch.path);
  expect(await isOwnTemporaryFolder(own.path)).toBe(true);
  for (const mode of [0o720, 0o702]) {
    await chmod(own.path, mode);
    expect(await isOwnTemporaryFolder(own.path)).toBe(false);
  }
  await chmod(own.path, 0o755);
  expect(await isOwnTemporaryFolder(own.path)).toBe(true);
  const [link, file, longer] = [
    "cluster-e2e-link00",
    "cluster-e2e-file00",
    "cluster-e2e-longer0",
  ].map((name) => join(scratch.path, name)) as [string, string, string];
  await symlink(own.path, link);
  await writeFile(file, "");
  await mkdir(longer);
  for (const path of [link, file, longer, `${own.path.slice(0, -1)}_`, "cluster-e2e-abcdef"])
    expect([path, await isOwnTemporaryFolder(path)]).toEqual([path, false]);
});

test("what is at a path", async () => {
  await using scratch = await scratchFolder();
  const [file, link, dangling, absent] = ["file", "link", "dangling", "absent"].map((name) =>
    join(scratch.path, name),
  );
  await writeFile(file!, "", { mode: 0o600 });
  await symlink(file!, link!);
  await symlink(absent!, dangling!);
  const paths = [scratch.path, file!, link!, dangling!, absent!];
  const ask = (question: (path: string) => Promise<boolean>) => Promise.all(paths.map(question));
  expect(await ask(isFolder)).toEqual([true, false, false, false, false]);
  expect(await ask(isFile)).toEqual([false, true, true, false, false]);
  expect(await ask((path) => isAccessible(path))).toEqual([true, true, true, false, false]);
  // A rename would replace a link, not what it leads to.
  expect(await ask(isFileOrAbsent)).toEqual([false, true, false, false, true]);
  expect(await failureOf(isFileOrAbsent(join(file!, "below")))).toHaveProperty("code", "ENOTDIR");
});

test("an error's code is its own, or its cause's", () => {
  const own = Object.assign(new Error("a"), { code: "ENOENT" });
  expect(errorCode(own)).toBe("ENOENT");
  expect(errorCode(new Error("b", { cause: own }))).toBe("ENOENT");
  for (const other of [
    new Error("c"),
    Object.assign(new Error("d"), { code: 7 }),
    { code: "ENOENT" },
    undefined,
  ])
    expect(errorCode(other)).toBeUndefined();
});

test.each([
  ["ENOSPC", true],
  ["EDQUOT", true],
  ["EACCES", false],
])("an error with the code %s shows that the disk is full: %p", (code, isFull) => {
  expect(isDiskFull(Object.assign(new Error("x"), { code }))).toBe(isFull);
});

test("a umask that takes rights from this user takes none from its own files", async () => {
  await using scratch = await scratchFolder();
  const umask = process.umask(0o777);
  const made = temporaryFolder(scratch.path).finally(() => process.umask(umask));
  await using folder = await made;
  process.umask(0o777);
  await writePrivateFileIn(scratch.path, "key", "secret").finally(() => process.umask(umask));
  const modes = [folder.path, join(scratch.path, "key")].map(
    async (path) => (await stat(path)).mode & 0o777,
  );
  expect(await Promise.all(modes)).toEqual([0o700, 0o600]);
});
