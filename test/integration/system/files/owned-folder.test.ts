/** Temporary folders of programs that were killed. */
import { expect, test } from "bun:test";
import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { ownedFolder } from "../../../../src/system/files/owned-folder.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const source = join(import.meta.dir, "../../../../src/system/files/owned-folder.ts");
const code = `
const { ownedFolder, ownedTemporaryFolder } = await import(process.argv[1]);
const folder = process.argv[2] === "" ? await ownedTemporaryFolder() : await ownedFolder(process.argv[2]);
console.log(folder.path);
setInterval(() => {}, 1000);
`;

/** Another program that has made a folder, and runs on. Files of its umask may be written by anybody. */
async function holder(parent: string, temporary = parent) {
  const argv = [
    "sh",
    "-c",
    'umask 0; exec "$@"',
    "sh",
    process.execPath,
    "-e",
    code,
    source,
    parent,
  ];
  const child = Bun.spawn(argv, {
    stdout: "pipe",
    stderr: "inherit",
    env: { ...process.env, TMPDIR: temporary },
  });
  const { value } = await child.stdout.getReader().read();
  return {
    path: Buffer.from(value ?? [])
      .toString()
      .trim(),
    kill: async (): Promise<void> => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

test("a folder is its user's alone, and goes with the next one after its program was killed", async () => {
  await using scratch = await scratchFolder();
  const [killed, alive] = [await holder(scratch.path), await holder(scratch.path)];
  expect((await stat(killed.path)).mode & 0o777).toBe(0o700);
  // Somebody's own, which only looks like ours.
  await mkdir(join(scratch.path, "cluster-e2e-abcdef"));
  await killed.kill();
  await using next = await ownedFolder(scratch.path);
  const left = (await readdir(scratch.path)).map((name) => join(scratch.path, name));
  expect(left.toSorted()).toEqual(
    [alive.path, next.path, join(scratch.path, "cluster-e2e-abcdef")].toSorted(),
  );
  await alive.kill();
});

test("the system's temporary folder is cleared in the same way", async () => {
  await using scratch = await scratchFolder();
  const killed = await holder("", scratch.path);
  await killed.kill();
  expect(await readdir(scratch.path)).toHaveLength(1);
  const next = await holder("", scratch.path);
  expect((await readdir(scratch.path)).map((name) => join(scratch.path, name))).toEqual([
    next.path,
  ]);
  await next.kill();
});
