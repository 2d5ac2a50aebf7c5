import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  type SyncFile,
  type SyncPlan,
  checkoutArchive,
} from "../../../../src/platform/checkout/checkout.ts";
import { layouts } from "../../../../src/platform/layouts/find-layout.ts";
import { factsOfFile } from "../../../support/facts-of-file.ts";
import type { FileFacts } from "../../../../src/system/files/listed-file.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const planOf = (files: readonly SyncFile[]): SyncPlan => ({
  layout: layouts[0],
  list: "own",
  files,
  unchanged: [],
  emptiedFolders: [],
  removedFolders: [],
  removedFiles: [],
  keptFiles: [],
});

const listed = (file: FileFacts, path: string): SyncFile => ({
  ...file,
  tree: "tests",
  path,
  mode: 0o755,
});

async function chunksOf(plan: SyncPlan): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of checkoutArchive(plan)) chunks.push(chunk);
  return chunks;
}

test("files of all sizes arrive as they are, in few chunks", async () => {
  await using folder = await scratchFolder();
  const sizes = [0, 1, 100_000, 100_001, 100_002, 1_500_000, 7];
  const texts = sizes.map((size) => Buffer.alloc(size, `${size} bytes `));
  const files: SyncFile[] = [];
  for (const [index, text] of texts.entries()) {
    const path = join(folder.path, String(index));
    await writeFile(path, text);
    files.push(listed(await factsOfFile(path), `f${index}`));
  }
  const chunks = await chunksOf(planOf(files));
  for (const chunk of chunks.slice(0, -1)) expect(chunk.length).toBeGreaterThanOrEqual(128 * 1024);
  const to = join(folder.path, "unpacked");
  await mkdir(to);
  expect(Bun.spawnSync(["tar", "-x", "-C", to], { stdin: Buffer.concat(chunks) }).exitCode).toBe(0);
  for (const [index, text] of texts.entries()) {
    expect((await readFile(join(to, `tests/f${index}`))).equals(text)).toBe(true);
  }
  expect((await stat(join(to, "tests/f1"))).mode & 0o777).toBe(0o755);
  expect((await stat(join(to, "complete"))).size).toBe(0);
});

test.each([10, 2_000_000])(
  "a file of %d bytes that has vanished meanwhile is named",
  async (size) => {
    const file = {
      source: "/nowhere/test_a.py",
      device: 1,
      inode: 2,
      sizeBytes: size,
      modifiedMs: 3,
    };
    const failure = await failureOf(chunksOf(planOf([listed(file, "test_a.py")])));
    expect(failure).toMatchObject({
      id: "transfer-failed",
      hint: expect.stringContaining("Try again"),
    });
    expect(failure.message).toBe(
      "Cannot read /nowhere/test_a.py any longer: no such file or directory.",
    );
  },
);
