import { chmod, mkdir, readFile, rename, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  abandonedCreations,
  beginCreation,
  creationDirectory,
  creationFiles,
  endCreation,
  endRemovedCreation,
  isCreationHere,
  isCreationUnderWay,
  isEndedCreation,
  isFinishedCreation,
  isOwnFolder,
  presentCreations,
  creationsProblem,
  fileSystemLack,
} from "../../../src/store/creation-folder.ts";
import { failureOf } from "../../support/failure-of.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const creationId = "0123456789abcdef";
const mountLack =
  process.getuid?.() === 0 && process.platform === "linux"
    ? undefined
    : "nothing can be mounted here";

interface Owner {
  readonly host: string;
  readonly pid: number;
  readonly startedAt: string;
}

/** A creation that belongs to another process. */
async function creationOf(
  root: string,
  change: (owner: Owner) => Owner | undefined,
): Promise<string> {
  const directory = creationDirectory(root, "default", creationId);
  await beginCreation(directory, "default", creationId);
  const path = creationFiles(directory).creation;
  const creation = JSON.parse(await readFile(path, "utf8")) as { owner: Owner };
  await writeFile(path, JSON.stringify({ ...creation, owner: change(creation.owner) }));
  return directory;
}

test("is private to this user, and locked by its process", async () => {
  await using folder = await scratchFolder();
  const directory = await creationOf(folder.path, (owner) => owner);
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
  expect((await stat(creationFiles(directory).creation)).mode & 0o777).toBe(0o600);
  const creation = JSON.parse(await readFile(creationFiles(directory).creation, "utf8")) as {
    owner: Owner;
  };
  expect(creation.owner.pid).toBe(process.pid);
  expect(await abandonedCreations(folder.path, "default")).toEqual([]);
});

test.each([
  ["its process is gone", (owner: Owner) => ({ ...owner, pid: 2 ** 22 + 1 }), 1],
  ["another process has its number now", (owner: Owner) => ({ ...owner, startedAt: "boot:1" }), 1],
  [
    "it runs on another host, perhaps",
    (owner: Owner) => ({ ...owner, host: "elsewhere", boot: "another", pid: 2 ** 22 + 1 }),
    0,
  ],
  ["nobody knows whose it is", () => undefined, 0],
])("whether it counts as abandoned if %s", async (_, change, count) => {
  await using folder = await scratchFolder();
  const directory = await creationOf(folder.path, change);
  const found = await abandonedCreations(folder.path, "default");
  expect(found.map((creation) => creation.directory)).toEqual(count === 1 ? [directory] : []);
  expect(await abandonedCreations(folder.path, "another")).toEqual([]);
});

test("a creation in use is abandoned once its process is gone", async () => {
  await using folder = await scratchFolder();
  const directory = await creationOf(folder.path, (owner) => owner);
  await endCreation(directory, "in-use");
  expect(await isFinishedCreation(directory)).toBe(true);
  expect(await abandonedCreations(folder.path, "default")).toEqual([]);
  const path = creationFiles(directory).creation;
  await writeFile(
    path,
    (await readFile(path, "utf8")).replace(/"startedAt": "[^"]*"/, '"startedAt": "boot:1"'),
  );
  expect(
    (await abandonedCreations(folder.path, /^def/)).map((creation) => creation.directory),
  ).toEqual([directory]);
});

test.each(["finished", "removed"] as const)("a %s creation is not abandoned", async (state) => {
  await using folder = await scratchFolder();
  const directory = await creationOf(folder.path, (owner) => ({ ...owner, startedAt: "boot:1" }));
  await endCreation(directory, state);
  expect(await abandonedCreations(folder.path, "default")).toEqual([]);
});

test("a creation that its process gave up is abandoned, although the process still runs", async () => {
  await using folder = await scratchFolder();
  const directory = await creationOf(folder.path, (owner) => owner);
  await endCreation(directory, "abandoned");
  const found = await abandonedCreations(folder.path, "default");
  expect(found.map((creation) => creation.directory)).toEqual([directory]);
});

test("folders with a missing or unreadable creation are skipped", async () => {
  await using folder = await scratchFolder();
  await writeFile(join(folder.path, "default-file"), "");
  const directory = await creationOf(folder.path, (owner) => ({ ...owner, startedAt: "boot:1" }));
  await writeFile(creationFiles(directory).creation, "{");
  expect(await abandonedCreations(folder.path, "default")).toEqual([]);
  expect(await abandonedCreations(join(folder.path, "missing"), "default")).toEqual([]);
});

test("a cluster is here from its completion until its removal, which takes its key", async () => {
  await using folder = await scratchFolder();
  const directory = await creationOf(folder.path, (owner) => owner);
  const { privateKey } = creationFiles(directory);
  await writeFile(privateKey, "key");
  const facts = async () => [
    await isCreationUnderWay(directory),
    await isCreationHere(directory),
    await isEndedCreation(directory),
    (await presentCreations(folder.path, "default")).length,
    await Bun.file(privateKey).exists(),
  ];
  expect(await facts()).toEqual([true, true, false, 0, true]);
  await endCreation(directory, "finished");
  expect(await facts()).toEqual([false, true, false, 1, true]);
  expect(await presentCreations(folder.path, "defaul")).toEqual([]);
  await endCreation(directory, "abandoned");
  expect(await facts()).toEqual([false, false, true, 0, true]);
  await endRemovedCreation(directory);
  expect(await facts()).toEqual([false, false, true, 0, false]);
});

test.skipIf(mountLack !== undefined)(
  `on a full disk, a removed creation's key makes room for the record, and errors name the file (${mountLack ?? "here"})`,
  async () => {
    await using folder = await scratchFolder();
    await Bun.$`mount -t tmpfs -o size=64k,mode=700 tmpfs ${folder.path}`.quiet();
    try {
      const directory = await creationOf(folder.path, (owner) => owner);
      await writeFile(creationFiles(directory).privateKey, "key");
      await Bun.$`cat /dev/zero >${join(folder.path, "filler")}`.nothrow().quiet();
      const path = creationFiles(directory).creation;
      const message = expect.stringContaining(`'${path}'`);
      expect(await failureOf(endCreation(directory, "abandoned"))).toMatchObject({
        code: "ENOSPC",
        message,
        path,
      });
      await endRemovedCreation(directory);
      expect(await isEndedCreation(directory)).toBe(true);
    } finally {
      await Bun.$`umount ${folder.path}`.quiet();
    }
  },
);

test("an imported cluster, of which no creation is known, is present", async () => {
  await using folder = await scratchFolder();
  const directory = creationDirectory(folder.path, "default", creationId);
  await mkdir(directory);
  expect(await presentCreations(folder.path, "default")).toEqual([directory]);
});

test("a creation whose process is gone is not under way", async () => {
  await using folder = await scratchFolder();
  const directory = await creationOf(folder.path, (owner) => ({ ...owner, startedAt: "boot:1" }));
  expect(await isCreationUnderWay(directory)).toBe(false);
});

test("a folder that is a link is not the creation's, wherever it leads", async () => {
  await using folder = await scratchFolder();
  const directory = await creationOf(folder.path, (owner) => owner);
  await endCreation(directory, "finished");
  await writeFile(creationFiles(directory).privateKey, "key");
  expect([await isOwnFolder(directory), await isCreationHere(directory)]).toEqual([true, true]);
  const elsewhere = join(folder.path, "elsewhere");
  await rename(directory, elsewhere);
  expect(await isOwnFolder(directory)).toBe(true);
  await symlink(elsewhere, directory);
  expect([await isOwnFolder(directory), await isCreationHere(directory)]).toEqual([false, false]);
  expect([
    await isFinishedCreation(directory),
    await presentCreations(folder.path, "default"),
  ]).toEqual([false, []]);
  await endRemovedCreation(directory);
  expect(await readFile(creationFiles(elsewhere).privateKey, "utf8")).toBe("key");
  await rename(elsewhere, `${elsewhere}-too`);
  expect(await isOwnFolder(directory)).toBe(false);
  // Folders above it may be links.
  await symlink(folder.path, join(folder.path, "root"));
  expect(await isOwnFolder(join(folder.path, "root", "elsewhere-too"))).toBe(true);
});

test("a folder of creations needs a file system with access rights", async () => {
  await using scratch = await scratchFolder();
  expect(await creationsProblem(join(scratch.path, "new", "docker"))).toBeUndefined();
  // Where modes mean nothing, all rights are shown.
  await chmod(scratch.path, 0o777);
  expect(await fileSystemLack(scratch.path)).toContain("no access rights");
});
