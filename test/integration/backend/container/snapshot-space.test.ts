/** What nodes print about their disk before a snapshot, with this computer's own tools, and archives of volumes. */
import { expect, test } from "bun:test";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import listSparse from "../../../../src/backend/container/snapshots/list-sparse.sh" with { type: "text" };
import measureSpace from "../../../../src/backend/container/snapshots/measure-space.sh" with { type: "text" };
import { readVolumeWords } from "../../../../src/backend/container/snapshots/saved-volumes.ts";
import { readNeeds } from "../../../../src/backend/container/snapshots/assert-space.ts";
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { checkedTar } from "../../../../src/system/files/checked-tar.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

async function sparseFile(path: string, bytes: number): Promise<void> {
  await writeFile(path, "head");
  await truncate(path, bytes);
}

test("a node's disk and its volumes are measured; a sparse file counts there with its blocks", async () => {
  await using scratch = await scratchFolder();
  await sparseFile(join(scratch.path, "s"), 3e9);
  const argv = ["/bin/sh", "-ec", shellText(measureSpace), "sh", scratch.path];
  const child = Bun.spawn(argv, { stdout: "pipe", stderr: "pipe" });
  const printed = await child.stdout.text();
  expect([await child.stderr.text(), await child.exited]).toEqual(["", 0]);
  const [own, volume] = readNeeds(printed, { layerBytes: 1024, volumes: 1 });
  expect(own).toMatchObject({ needed: 1 });
  expect(own!.disk).toBeGreaterThan(own!.free);
  expect(volume!.disk).toBeGreaterThan(0);
  expect(volume!.needed).toBeLessThan(1000);
});

test("sparse files are found, the largest first; full files are not", async () => {
  await using scratch = await scratchFolder();
  await writeFile(join(scratch.path, "full"), Buffer.alloc(25e6, 1));
  for (const [name, bytes] of [
    ["one", 1e9],
    ["two words", 2e9],
    ["little", 1e6],
  ] as const)
    await sparseFile(join(scratch.path, name), bytes);
  const script = shellText(listSparse).replace("find / ", `find '${scratch.path}' `);
  const child = Bun.spawn(["/bin/sh", "-ec", script], { stdout: "pipe" });
  const paths = (await child.stdout.text())
    .trim()
    .split("\n")
    .map((line) => line.split("/").at(-1));
  expect(paths).toEqual(["two words", "one"]);
});

test("an archive of a volume with a sparse file passes the check of those who read it", async () => {
  await using scratch = await scratchFolder();
  await sparseFile(join(scratch.path, "s"), 30e6);
  const words = readVolumeWords({ rights: [], image: "image", volume: "volume" });
  const given = words.slice(words.indexOf("image") + 1);
  const own = given.map((word) =>
    word.startsWith("--directory=") ? `--directory=${scratch.path}` : word,
  );
  const reader = Bun.spawn(["tar", ...own], { stdout: "pipe" });
  const sizes = await Array.fromAsync(checkedTar(reader.stdout), ({ length }) => length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(30e6);
});
