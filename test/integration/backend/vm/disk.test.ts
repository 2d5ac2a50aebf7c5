/** Which disk images are accepted for nodes, as QEMU's `qemu-img` describes them. */
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import {
  assertDiskIsLargeEnough,
  createDisk,
  readImageFacts,
} from "../../../../src/backend/vm/images/image-store.ts";
import { createFlash } from "../../../../src/backend/vm/qemu/firmware.ts";
import { openQemu } from "../../../../src/backend/vm/qemu/qemu.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const qemu = openQemu(
  { environment: process.env, progress: silentProgress },
  architectureOf("x64"),
);
const isHere = Bun.which("qemu-img") !== null;

async function makeImage(folder: string, ...words: readonly string[]): Promise<string> {
  const path = join(folder, "image.qcow2");
  const end = await qemu.image(["create", "-q", "-f", "qcow2", ...words, path, "1M"], neverAborted);
  expect(end).toMatchObject({ status: 0 });
  return path;
}

test.skipIf(!isHere)("an image with its own contents is accepted", async () => {
  await using folder = await scratchFolder();
  const path = await makeImage(folder.path);
  expect(await readImageFacts(qemu, path, neverAborted)).toEqual({
    path,
    format: "qcow2",
    sizeBytes: 1_048_576,
  });
});

test.skipIf(!isHere)(
  "an image that would expose another file of this computer to the nodes is rejected",
  async () => {
    await using folder = await scratchFolder();
    const secret = join(folder.path, "secret");
    await writeFile(secret, "key\n".repeat(300_000));
    const refused = /refers to another file, which could be any file on this computer/;
    const layered = await makeImage(folder.path, "-b", secret, "-F", "raw");
    expect((await failureOf(readImageFacts(qemu, layered, neverAborted))).message).toMatch(refused);
    const split = await makeImage(folder.path, "-o", `data_file=${secret}`);
    expect((await failureOf(readImageFacts(qemu, split, neverAborted))).message).toMatch(refused);
  },
);

test.skipIf(!isHere)("an image that qemu-img can't read is an error with its message", async () => {
  await using folder = await scratchFolder();
  const failure = await failureOf(readImageFacts(qemu, join(folder.path, "missing"), neverAborted));
  expect(failure.id).toBe("image-not-found");
  expect(failure.message).toContain("qemu-img info failed: Could not open");
});

test.skipIf(!isHere)(
  "a disk is a layer on its image, and one that can't be created is an error",
  async () => {
    await using folder = await scratchFolder();
    const image = { path: await makeImage(folder.path), format: "qcow2" } as const;
    const path = join(folder.path, "disk.qcow2");
    await createDisk(qemu, { path, image, megabytes: 8 }, neverAborted);
    const told = JSON.parse(
      (await qemu.image(["info", "--output=json", path], neverAborted)).stdout,
    ) as object;
    expect(told).toMatchObject({
      "virtual-size": 8 * 1024 ** 2,
      "full-backing-filename": image.path,
    });
    const nowhere = join(folder.path, "missing", "disk.qcow2");
    expect(
      await failureOf(createDisk(qemu, { path: nowhere, image, megabytes: 8 }, neverAborted)),
    ).toMatchObject({
      id: "engine-failed",
      message: expect.stringContaining("qemu-img create failed: "),
    });
  },
);

test("a disk must be as large as its image, and the error names the least size", () => {
  const image = { path: "/image.qcow2", format: "qcow2", sizeBytes: 2.5 * 1024 ** 3 + 1 } as const;
  expect(() => assertDiskIsLargeEnough(image, 2561)).not.toThrow();
  expect(() => assertDiskIsLargeEnough(image, 2560)).toThrow(
    expect.objectContaining({
      id: "bad-usage",
      facts: { image: "/image.qcow2", neededMegabytes: 2561 },
      hint: "Pass `diskSize 3g` or more.",
    }),
  );
});

test.skipIf(!isHere)(
  "a machine keeps its firmware when an upgrade replaces that of this computer",
  async () => {
    await using folder = await scratchFolder();
    const at = (name: string): string => join(folder.path, name);
    const flash = { program: at("own-program.qcow2"), variables: at("own-variables.qcow2") };
    const image = (name: string) => ({ path: at(name), format: "raw" }) as const;
    const firmware = { program: image("program"), variables: image("variables") };
    for (const { path } of Object.values(firmware)) await writeFile(path, `former ${path}`);
    await createFlash(qemu, firmware, { flash }, neverAborted);
    for (const { path } of Object.values(firmware)) await writeFile(path, "newer");
    for (const [own, { path }] of [
      [flash.program, firmware.program],
      [flash.variables, firmware.variables],
    ] as const) {
      expect(
        await qemu.image(["convert", "-O", "raw", own, at("read")], neverAborted),
      ).toMatchObject({
        status: 0,
      });
      const bytes = Buffer.from(await Bun.file(at("read")).arrayBuffer());
      expect(bytes.length).toBe(64 * 1024 ** 2);
      expect(bytes.toString("latin1")).toStartWith(`former ${path}\0`);
    }
  },
);
