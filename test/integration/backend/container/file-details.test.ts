/** file-details.py, which runs on nodes, with a real Python. */
import { expect, test } from "bun:test";
import { link, lstat, lutimes, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const script = join(import.meta.dir, "../../../../src/backend/container/snapshots/file-details.py");
const lack = Bun.which("python3") === null ? "there is no python3" : undefined;

/** Saves the details of files below the folder. Any file has one attribute, and `before` runs when that of a path is read. */
const saving = `
import os, sys
top, output, before = sys.argv[1:]
def listed(path, follow_symlinks):
    exec(before)
    return ["user.e2e"]
os.listxattr = listed
os.getxattr = lambda path, name, follow_symlinks: b"1"
sys.argv = ["", "save", output]
exec(open("${script}").read().replace('b"/"', repr(os.fsencode(top))))
`;

async function python(...argv: readonly string[]): Promise<void> {
  const child = Bun.spawn(["python3", ...argv], { stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, status] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  expect([stdout, stderr, status]).toEqual(["", "", 0]);
}

/** Returns the paths whose details were saved. */
async function save(top: string, before: string): Promise<readonly string[]> {
  const output = `${top}.saved`;
  await python("-c", saving, top, output, before);
  const lines = (await readFile(output, "utf8")).trim().split("\n");
  return lines
    .flatMap((line) => (JSON.parse(line) as { readonly paths: readonly string[] }).paths)
    .map((path) => Buffer.from(path, "hex").toString());
}

test.skipIf(lack !== undefined)(
  `a folder that vanishes while it is read does not fail a snapshot (${lack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    const top = join(scratch.path, "top");
    await mkdir(join(top, "gone"), { recursive: true });
    await mkdir(join(top, "stays"));
    await writeFile(join(top, "stays", "file"), "");
    const saved = await save(top, "path.endswith(b'/gone') and os.rmdir(path)");
    expect(saved).toContain(join(top, "stays", "file"));
  },
);

test.skipIf(lack !== undefined)(
  `a deep folder is read to its end (${lack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    const top = join(scratch.path, "top");
    const deepest = join(top, ...Array.from({ length: 1_200 }, () => "d"));
    await mkdir(deepest, { recursive: true });
    expect(await save(top, "")).toContain(deepest);
  },
);

/** Fills the holes of a file, as an engine's image does, and writes what came after its details were saved. */
const fill = `
import os, sys
path, late = sys.argv[1:]
found = os.stat(path)
data = open(path, "rb").read()
with open(path, "r+b") as file:
    file.write(data)
    file.seek(int(late))
    file.write(b"late")
os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
`;

test.skipIf(lack !== undefined)(
  `sparse files get their holes back, with every byte, time and link; others are left alone (${lack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    const top = join(scratch.path, "top");
    await mkdir(top);
    const [sparse, other] = [join(top, "with a\nline"), join(top, "other")];
    const size = 40 << 20;
    await writeFile(sparse, "begin", { mode: 0o640 });
    await Bun.$`truncate -s ${size} ${sparse} && printf end >> ${sparse}`;
    await link(sparse, join(top, "link"));
    await writeFile(other, Buffer.alloc(4 << 20));
    const [before, untouched] = [await lstat(sparse), await lstat(other)];
    expect(before.blocks * 512).toBeLessThan(1 << 20);
    await save(top, "");
    await python("-c", fill, sparse, String(20 << 20));
    expect((await lstat(sparse)).blocks * 512).toBeGreaterThan(size);
    const contents = await readFile(sparse);
    const folder = await lstat(top);
    // Not every file system has attributes.
    const details = (await readFile(`${top}.saved`, "utf8")).replaceAll('{"user.e2e": "31"}', "{}");
    await writeFile(`${top}.saved`, details);
    await python(script, "restore", `${top}.saved`);
    const after = await lstat(sparse);
    expect(after.blocks * 512).toBeLessThan(1 << 20);
    expect(Buffer.compare(contents, await readFile(join(top, "link")))).toBe(0);
    const shown = ({ mode, mtimeMs, nlink }: typeof after) => ({ mode, mtimeMs, nlink });
    expect(shown(after)).toEqual(shown(before));
    expect((await lstat(other)).ino).toBe(untouched.ino);
    expect((await lstat(top)).mtimeMs).toBe(folder.mtimeMs);
  },
);

test.skipIf(lack !== undefined)(
  `times that engines write as 1970 come back, of files, links and folders (${lack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    const top = join(scratch.path, "top");
    await mkdir(join(top, "folder"), { recursive: true });
    const [file, late, other] = ["folder/file", "folder/late", "folder/other"].map((name) =>
      join(top, name),
    ) as [string, string, string];
    for (const path of [file, late, other]) await writeFile(path, "");
    await link(file, join(top, "link"));
    await symlink("nowhere", join(top, "symbolic"));
    const old = new Date("1955-01-02T03:04:05Z");
    const paths = [file, late, join(top, "symbolic"), join(top, "folder")];
    for (const path of paths) await lutimes(path, old, old);
    const otherMs = (await lstat(other)).mtimeMs;
    await save(top, "");
    const details = (await readFile(`${top}.saved`, "utf8")).replaceAll('{"user.e2e": "31"}', "{}");
    await writeFile(`${top}.saved`, details);
    for (const path of paths) await lutimes(path, 0, 0);
    // Written to after its details were saved.
    await lutimes(late, 7, 7);
    await python(script, "restore", `${top}.saved`);
    const times = await Promise.all(
      [...paths, join(top, "link")].map(async (path) => (await lstat(path)).mtimeMs),
    );
    const oldMs = old.getTime();
    expect(times).toEqual([oldMs, 7000, oldMs, oldMs, oldMs]);
    expect((await lstat(other)).mtimeMs).toBe(otherMs);
    expect((await lstat(file)).nlink).toBe(2);
  },
);

test.skipIf(lack !== undefined)(
  `a sparse file that was removed while the node was saved is left out (${lack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    const saved = join(scratch.path, "saved");
    const gone = Buffer.from(join(scratch.path, "gone")).toString("hex");
    await writeFile(saved, `${JSON.stringify({ paths: [gone], attributes: {}, sparse: true })}\n`);
    await python(script, "restore", saved);
  },
);
