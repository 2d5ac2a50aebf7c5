import { mkdir, statfs, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { diskCheck, imageCheck, memoryCheck } from "../../../../src/backend/vm/checks.ts";
import { imageFolder } from "../../../../src/backend/vm/images/image-store.ts";
import { defaults } from "../../../../src/backend/vm/options.ts";
import { outcomeText } from "../../../support/outcome-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const { signal } = new AbortController();
const enough = 3 * defaults.memoryMegabytes * 1024 ** 2;

test.each([
  [enough, "pass"],
  [enough - 1, "warn"],
] as const)(
  "three machines of the usual size need their memory: %d bytes free: %s",
  async (freeBytes, status) => {
    const outcome = await memoryCheck({ totalBytes: 64e9, freeBytes }).run(signal);
    expect(outcome.status).toBe(status);
    expect(outcome.message).toContain(
      `${(Math.floor(freeBytes / 1e8) / 10).toFixed(1)} of 64.0 GB`,
    );
  },
);

test("the disk is that of the nearest folder that is there", async () => {
  await using folder = await scratchFolder();
  const [here, below] = await Promise.all(
    [folder.path, join(folder.path, "not/yet")].map(async (path) => diskCheck(path).run(signal)),
  );
  expect(below!.status).toBe(here!.status);
  expect(below!.message).toContain("not/yet");
  expect(below!.message).not.toContain(" 0.0 GB");
  const { bavail, bsize } = await statfs(folder.path);
  expect(here!.status).toBe(bavail * bsize >= 10e9 ? "pass" : "warn");
});

test.skipIf(process.platform !== "linux")(
  "a disk without space is a warning that says where to put the machines",
  async () => {
    // The kernel's own file system has no space at all.
    expect(outcomeText(await diskCheck("/proc").run(signal))).toBe(
      "warn: There are only 0.0 GB free at /proc, but a small cluster may need 10.0 GB. → " +
        "Free some space, or set XDG_STATE_HOME to another folder.",
    );
  },
);

test("an image cache that cannot be written is reported", async () => {
  await using folder = await scratchFolder();
  const environment = { XDG_CACHE_HOME: folder.path };
  await writeFile(join(folder.path, "cluster-e2e"), "");
  const path = imageFolder(environment);
  const cause = `${join(folder.path, "cluster-e2e")}: not a directory`;
  expect(await imageCheck(environment).run(signal)).toMatchObject({
    status: "fail",
    message: `Cannot write to the image cache ${path}: ${cause}.`,
    remedy: expect.stringContaining("XDG_CACHE_HOME"),
  });
});

test("images in the cache are counted, with their sizes, and other files are not", async () => {
  await using folder = await scratchFolder();
  const environment = { XDG_CACHE_HOME: folder.path };
  expect(await imageCheck(environment).run(signal)).toMatchObject({ status: "skip" });
  const images = imageFolder(environment);
  await mkdir(images, { recursive: true });
  for (const name of ["b.img", "a.img", "a.part"]) {
    await writeFile(join(images, name), "");
    await truncate(join(images, name), 60_000_000);
  }
  const outcome = await imageCheck(environment).run(signal);
  expect(outcome).toMatchObject({ status: "pass", details: ["a.img", "b.img"] });
  expect(outcome.message).toStartWith("2 in ");
  expect(outcome.message).toEndWith("0.1 GB");
});
