/** attributes.py, which runs on nodes, with a real Python. */
import { expect, test } from "bun:test";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const script = join(import.meta.dir, "../../../../src/backend/container/snapshots/attributes.py");
const lack = Bun.which("python3") === null ? "there is no python3" : undefined;

/** Saves the attributes below the folder. Any file has one, and `before` runs when the one of a path is read. */
const program = `
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

async function save(top: string, before: string): Promise<readonly string[]> {
  const output = `${top}.saved`;
  const child = Bun.spawn(["python3", "-c", program, top, output, before], { stderr: "pipe" });
  expect([await child.stderr.text(), await child.exited]).toEqual(["", 0]);
  const lines = (await readFile(output, "utf8")).trim().split("\n");
  return lines.map((line) => Buffer.from((JSON.parse(line) as [string])[0], "hex").toString());
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
