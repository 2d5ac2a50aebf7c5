import { expect, test } from "bun:test";
import { link, mkdir, rename, rm, symlink, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readPlatformFolder } from "../../../../src/platform/folder/read-folder.ts";
import { listCopyToMaster } from "../../../../src/platform/configuration/install-configuration.ts";
import { readGenconfFolder } from "../../../../src/platform/configuration/configuration-file.ts";
import { listFiles } from "../../../../src/system/files/list-files.ts";
import {
  type FileFacts,
  createFileSums,
  readListed,
  sha256OfListed,
} from "../../../../src/system/files/listed-file.ts";
import { readFileStart } from "../../../../src/platform/artifact/artifact-head.ts";
import { factsOfFile } from "../../../support/facts-of-file.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const text = "shared text\n";
const secret = "secret text\n";

/** A folder that colleagues share, and a private one with a file of the same name and size. */
async function makeFolders() {
  const scratch = await scratchFolder();
  const [shared, own] = [join(scratch.path, "shared"), join(scratch.path, "private")];
  for (const [folder, contents] of [
    [shared, text],
    [own, secret],
  ] as const) {
    await mkdir(join(folder, "inner"), { recursive: true });
    await writeFile(join(folder, "inner/file"), contents);
    await utimes(join(folder, "inner/file"), 1_700_000_000, 1_700_000_000);
  }
  return { shared, own, [Symbol.asyncDispose]: scratch[Symbol.asyncDispose] };
}

const contentsOf = async (file: FileFacts): Promise<string> =>
  Buffer.concat(await Array.fromAsync(readListed(file))).toString();

const replacements: readonly [
  string,
  (file: string, shared: string, own: string) => Promise<void>,
][] = [
  [
    "a folder by a link",
    async (_file, shared, own) => {
      await rename(join(shared, "inner"), join(shared, "moved"));
      await symlink(join(own, "inner"), join(shared, "inner"));
    },
  ],
  [
    "a folder by a link to the same file elsewhere",
    async (_file, shared, own) => {
      await rename(join(shared, "inner"), join(own, "moved"));
      await symlink(join(own, "moved"), join(shared, "inner"));
    },
  ],
  [
    "the listed folder by a link",
    async (_file, shared, own) => {
      await rename(shared, `${shared}-moved`);
      await symlink(own, shared);
    },
  ],
  [
    "the file by a link",
    async (file, _shared, own) => replace(file, () => symlink(join(own, "inner/file"), file)),
  ],
  [
    "the file by a hard link",
    async (file, _shared, own) => replace(file, () => link(join(own, "inner/file"), file)),
  ],
  [
    "the file by a pipe",
    async (file) => replace(file, async () => void (await Bun.$`mkfifo ${file}`)),
  ],
  ["the file by a device", async (file) => replace(file, () => symlink("/dev/zero", file))],
  ["the file by a folder", async (file) => replace(file, () => mkdir(file).then(() => {}))],
  ["the contents of the file", async (file) => writeFile(file, secret)],
  ["the end of the file", async (file) => truncate(file, 3)],
];

async function replace(file: string, make: () => Promise<void>): Promise<void> {
  await rm(file);
  await make();
}

test.each(replacements)(
  "nothing is read if somebody replaces %s after the listing",
  async (_what, change) => {
    await using folders = await makeFolders();
    const { shared, own } = folders;
    const { value: listed } = await listFiles(shared, {}, neverAborted);
    await change(join(shared, "inner/file"), shared, own);
    const error = await failureOf(contentsOf(listed![0]!));
    expect(error).toMatchObject({
      id: "transfer-failed",
      hint: expect.stringContaining("Try again"),
    });
    expect(error.message).toStartWith(
      `${join(shared, "inner/file")} is no longer the file that was listed`,
    );
  },
);

test("a listed file that is unchanged is read, also one behind a link within the folder", async () => {
  await using folders = await makeFolders();
  await symlink("inner", join(folders.shared, "link"));
  const { value: listed } = await listFiles(folders.shared, {}, neverAborted);
  expect(listed!.map(({ path }) => path)).toEqual(["inner/file", "link/file"]);
  for (const file of listed!) expect(await contentsOf(file)).toBe(text);
});

test("a file that changes while it is read fails", async () => {
  await using folders = await makeFolders();
  const path = join(folders.shared, "inner/file");
  await writeFile(path, Buffer.alloc(3_000_000));
  const chunks = readListed(await factsOfFile(path));
  await chunks.next();
  await utimes(path, 1, 1);
  const error = await failureOf(Array.fromAsync(chunks));
  expect(error.message).toContain("is no longer the file that was listed");
});

test.each<[string, (shared: string) => Promise<readonly FileFacts[]>]>([
  ["--genconf-dir", async (shared) => (await readGenconfFolder(shared, neverAborted)).value!],
  [
    "--copy-to-master with a folder",
    async (source) => (await listCopyToMaster({ source, target: "/x" }, neverAborted)).value!,
  ],
  [
    "--copy-to-master with a file",
    async (shared) =>
      (await listCopyToMaster({ source: join(shared, "inner/file"), target: "/x" }, neverAborted))
        .value!,
  ],
  ["an artifact", async (shared) => [(await readFileStart(join(shared, "inner/file"))).file]],
])("what %s has checked is what is sent, or nothing", async (_option, list) => {
  await using folders = await makeFolders();
  const { shared, own } = folders;
  const [file] = await list(shared);
  expect(await contentsOf(file!)).toBe(text);
  await rename(join(shared, "inner"), join(shared, "moved"));
  await symlink(join(own, "inner"), join(shared, "inner"));
  expect((await failureOf(contentsOf(file!))).id).toBe("transfer-failed");
});

test("a platform's own files are read as they were listed", async () => {
  await using folders = await makeFolders();
  const { shared } = folders;
  await writeFile(join(shared, "platform.yaml"), "name: sample\nversion: '1'\n");
  for (const name of ["install", "check"])
    await writeFile(join(shared, name), "#!/bin/sh\n", { mode: 0o755 });
  const { value } = await readPlatformFolder(shared, neverAborted);
  expect(value!.files.map(({ path }) => path)).toEqual([
    "check",
    "inner/file",
    "install",
    "platform.yaml",
  ]);
  for (const { source } of value!.files)
    expect("file" in source && source.file.inode).toBeGreaterThan(0);
});

test("each listed file is read once for its sum, and a large one can be given up", async () => {
  await using scratch = await scratchFolder();
  const path = join(scratch.path, "file");
  const bytes = Buffer.alloc(1_000_001, "x");
  await writeFile(path, bytes);
  const file = await factsOfFile(path);
  const sums = createFileSums();
  const expected = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  expect(await sums(file, neverAborted)).toBe(expected);
  await writeFile(path, "another");
  expect(await sums(file, neverAborted)).toBe(expected);
  expect((await failureOf(createFileSums()(file, neverAborted))).id).toBe("transfer-failed");
  const aborted = AbortSignal.abort(new Error("enough"));
  expect((await failureOf(sha256OfListed(await factsOfFile(path), aborted))).message).toBe(
    "enough",
  );
});
