import { expect, test } from "bun:test";
import { mkdir, symlink, unlink, writeFile } from "node:fs/promises";
import { unlinkSync } from "node:fs";
import { join } from "node:path";
import { listFiles } from "../../../../src/system/files/list-files.ts";
import { sha256OfListed } from "../../../../src/system/files/listed-file.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const { signal } = new AbortController();
/** A folder with these files and links, inside a boundary. */
async function makeTree(files: readonly string[], links: Readonly<Record<string, string>> = {}) {
  const scratch = await scratchFolder();
  const root = join(scratch.path, "root");
  await mkdir(join(root, "inner"), { recursive: true });
  for (const path of files) await writeFile(join(root, path), path, { mode: 0o640 });
  for (const [path, target] of Object.entries(links)) await symlink(target, join(root, path));
  const list = (isSkipped: (name: string) => boolean = () => false) =>
    listFiles(root, { boundary: root, isSkipped }, signal);
  return { root, list, [Symbol.asyncDispose]: scratch[Symbol.asyncDispose] };
}

test("all files are listed by path, with their modes and sizes, except skipped ones", async () => {
  await using tree = await makeTree(["b", "inner/a", "skipped"], { link: "inner/a" });
  const { value } = await tree.list((name) => name === "skipped");
  expect(value?.map(({ path, mode, sizeBytes }) => [path, mode, sizeBytes])).toEqual([
    ["b", 0o640, 1],
    ["inner/a", 0o640, 7],
    ["link", 0o640, 7],
  ]);
  expect(value?.at(-1)?.source).toEndWith("/inner/a");
});

test.each([
  ["nowhere", /link is a broken symbolic link\.$/],
  [".", /link is a symbolic link to one of its parent folders\.$/],
  ["/dev/null", /link is a symbolic link to \/dev\/null, outside /],
])("a link to %s is a problem", async (target, text) => {
  await using tree = await makeTree(["b"], { link: target });
  const { problems } = await tree.list();
  expect(problems).toHaveLength(1);
  expect(problems![0]).toMatch(text);
});

test("a folder whose name only begins alike is outside, and so is one behind a link that leads back", async () => {
  await using tree = await makeTree(["b"], { link: "../root-other", back: "inner/../b" });
  await mkdir(`${tree.root}-other`);
  expect((await tree.list()).problems).toEqual([
    `${join(tree.root, "link")} is a symbolic link to ${tree.root}-other, outside ${tree.root}.`,
  ]);
});

test.each([
  [199, undefined],
  [200, "is too deep."],
])("a folder with %d levels of folders: %p", async (count, problem) => {
  await using tree = await makeTree(["b"]);
  const deepest = join(tree.root, "d/".repeat(count));
  await mkdir(deepest, { recursive: true });
  await writeFile(join(deepest, "file"), "");
  const { value, problems } = await tree.list();
  if (problem === undefined)
    expect(value?.map(({ path }) => path)).toEqual(["b", `${"d/".repeat(count)}file`]);
  else expect(problems).toEqual([expect.stringContaining(problem)]);
});

test("names with line breaks forge no lines and no commands of CI systems", async () => {
  await using tree = await makeTree(["b"], {
    "a\nError: forged": "nowhere",
    "c\n::error::\u001b[2Jforged": "/etc/passwd",
  });
  const { problems = [] } = await tree.list();
  expect(problems).toHaveLength(2);
  expect(problems.join("")).not.toMatch(/\p{Cc}|(?<!\S)::error/u);
});

test("something that is no file is a problem, and a file that vanishes meanwhile is not listed", async () => {
  await using tree = await makeTree(["b"]);
  await Bun.$`mkfifo ${join(tree.root, "fifo")}`.quiet();
  const { problems } = await tree.list((name) => {
    if (name === "b") unlinkSync(join(tree.root, name));
    return false;
  });
  expect(problems).toEqual([`${join(tree.root, "fifo")} is neither a file nor a folder.`]);
  await unlink(join(tree.root, "fifo"));
});

test("a bug of the caller is no problem of a file", async () => {
  await using tree = await makeTree(["b"]);
  const bug = (): never => {
    throw new TypeError("a bug");
  };
  expect(await failureOf(tree.list(bug))).toBeInstanceOf(TypeError);
});

test("a folder with more paths than anybody can follow is a problem", async () => {
  await using tree = await makeTree([]);
  for (let level = 0; level < 30; level += 1) {
    await mkdir(join(tree.root, `f${level}`));
    for (const name of ["a", "b"])
      await symlink(`../f${level + 1}`, join(tree.root, `f${level}`, name));
  }
  await mkdir(join(tree.root, "f30"));
  const { problems } = await tree.list();
  expect(problems).toEqual([
    `${tree.root} has more than 100000 files and folders, counted once for each link to them.`,
  ]);
});

test("of many problems the first ones are listed, and an abort ends the listing", async () => {
  const names = Array.from({ length: 50 }, (_, index) => `link${index}`);
  await using tree = await makeTree(
    ["b"],
    Object.fromEntries(names.map((name) => [name, "nowhere"])),
  );
  expect((await tree.list()).problems).toHaveLength(20);
  const controller = new AbortController();
  const isSkipped = (): boolean => {
    controller.abort(new Error("interrupted"));
    return false;
  };
  const failure = await failureOf(
    listFiles(tree.root, { boundary: tree.root, isSkipped }, controller.signal),
  );
  expect(failure.message).toBe("interrupted");
});

test("an interrupt ends the listing of a folder with very many files, and the reading of them", async () => {
  const names = Array.from({ length: 200 }, (_, index) => `f${index}`);
  await using tree = await makeTree(names);
  const [listing, summing] = [new AbortController(), new AbortController()];
  const seen = { entries: 0, files: 0 };
  /** An interrupt arrives as an event, after the first entry has been seen. */
  const interrupt = (stop: AbortController): void =>
    void setImmediate(() => stop.abort(new Error("Ctrl-C")));
  const isSkipped = (): boolean => {
    if (seen.entries === 0) interrupt(listing);
    seen.entries += 1;
    return false;
  };
  const listed = failureOf(listFiles(tree.root, { isSkipped }, listing.signal));
  expect(await listed).toHaveProperty("message", "Ctrl-C");
  expect(seen.entries).toBeLessThan(names.length);
  const files = (await tree.list()).value ?? [];
  const sumAll = async (): Promise<void> => {
    for (const file of files) {
      if (seen.files === 0) interrupt(summing);
      seen.files += 1;
      await sha256OfListed(file, summing.signal);
    }
  };
  expect(await failureOf(sumAll())).toHaveProperty("message", "Ctrl-C");
  expect(seen.files).toBeLessThan(names.length);
});
