/** Which files are no disks that a machine could boot from. */
import { expect, test } from "bun:test";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assertIsDisk, checkImage } from "../../../../../src/backend/vm/images/assert-bootable.ts";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import { openQemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { bootSector } from "../../../../../src/backend/vm/qemu/x86-probe.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const openFor = (name: "x64" | "arm64") =>
  openQemu({ environment: process.env, progress: silentProgress }, architectureOf(name));
const isHere = Bun.which("qemu-img") !== null;

/** A disk with this first sector. */
const diskWith = (sector: Uint8Array) => {
  const disk = new Uint8Array(1_048_576);
  disk.set(sector);
  return disk;
};

const at = (offset: number, text: string): Uint8Array => {
  const bytes = new Uint8Array(40_000);
  bytes.set(Buffer.from(text, "latin1"), offset);
  return bytes;
};

const signatureOnly = new Uint8Array(512);
signatureOnly.set([0x55, 0xaa], 510);

async function fileWith(folder: string, contents: Uint8Array | string): Promise<string> {
  const path = join(await mkdtemp(join(folder, "image-")), "disk.qcow2");
  await writeFile(path, contents);
  return path;
}

test.each([
  ["is empty", "", "Download it again"],
  [
    "is a text or a web page",
    "<!DOCTYPE html>\n<html><title>404 Not Found – Größe</title></html>\n".repeat(20),
    "Download it again",
  ],
  ["is a text or a web page", '{"message": "Not Found"}', "Download it again"],
  [
    "is a text or a web page",
    "version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
    "Download it again",
  ],
  ["is compressed with gzip", Bun.gzipSync(diskWith(bootSector())), "gzip -d"],
  ["is compressed with zstd", Bun.zstdCompressSync(diskWith(bootSector())), "zstd -d"],
  ["is compressed with xz", at(0, "\xfd7zXZ\0"), "xz -d"],
  ["is compressed with bzip2", at(0, "BZh91AY&SY"), "bzip2 -d"],
  ["is compressed with lz4", at(0, "\x04\x22\x4d\x18"), "lz4 -d"],
  ["is a ZIP archive", at(0, "PK\x03\x04"), "unzip"],
  ["is a tar archive", at(257, "ustar\0"), "tar -xf"],
  ["is a disk of VMware", at(0, "KDMV\x01"), "qemu-img convert -O qcow2"],
  ["describes a disk of VMware", "# Disk DescriptorFile\nversion=1\n", "qemu-img convert -O qcow2"],
  ["is a disk of Hyper-V", at(0, "vhdxfile"), "qemu-img convert -O qcow2"],
  ["is a disk of Virtual PC", at(0, "conectix"), "qemu-img convert -O qcow2"],
  ["is a disk of VirtualBox", at(64, "\x7f\x10\xda\xbe"), "qemu-img convert -O qcow2"],
  ["is a file system without a partition table", at(54, "FAT16   "), "whole disk"],
  ["is a file system without a partition table", at(82, "FAT32   "), "whole disk"],
  ["is a Linux kernel", at(0x202, "HdrS"), "whole disk"],
  ["is an ISO image, such as of an installation DVD", at(0x8001, "CD001"), "cloud image"],
] as const)("a file that %s is refused, with the remedy", async (what, contents, hint) => {
  await using folder = await scratchFolder();
  const path = await fileWith(folder.path, contents);
  const error = await failureOf(assertIsDisk(path));
  expect(error).toMatchObject({
    id: "image-not-found",
    message: `Nodes cannot be created from ${path}: it ${what}.`,
  });
  expect(error.hint).toContain(hint);
});

/** A disk of which the partition table begins at this byte, as it does with sectors of that size. */
const gptAt = (offset: number): Uint8Array => {
  const head = Buffer.concat([bootSector().slice(0, 440), Buffer.alloc(40_000)]);
  head.set([0x55, 0xaa], 510);
  head.write("EFI PART", offset, "latin1");
  return head;
};

const unbootable = [
  ["x64", "zeros", new Uint8Array(512), "has no boot signature in its first sector"],
  ["arm64", "zeros", new Uint8Array(512), "has no boot signature in its first sector"],
  [
    "x64",
    "a disk for UEFI",
    signatureOnly,
    "has no boot loader for BIOS; perhaps it boots only with UEFI",
  ],
  [
    "x64",
    "sectors of 4096 bytes",
    gptAt(4096),
    "has sectors of 4096 bytes, and those of the machines' disks have 512",
  ],
] as const;

const check = async (name: "x64" | "arm64", path: string) =>
  checkImage(openFor(name), { path, diskMegabytes: 64 }, neverAborted);

test.skipIf(!isHere).each(unbootable)(
  "a disk from which %s machines can't boot is refused, in both formats: %s",
  async (name, _, head, what) => {
    await using folder = await scratchFolder();
    const disk = diskWith(head);
    const raw = await fileWith(folder.path, disk);
    for (const path of [raw, await qcow2With(folder.path, disk)])
      expect(await failureOf(check(name, path))).toMatchObject({
        id: "image-not-found",
        message: `Nodes cannot be created from ${path}: it ${what}.`,
      });
  },
);

test.skipIf(!isHere)("a disk that is smaller than a sector is refused", async () => {
  await using folder = await scratchFolder();
  const path = await fileWith(folder.path, bootSector().slice(0, 300));
  const error = await failureOf(check("x64", path));
  expect(error.message).toContain("has no boot signature");
});

test.skipIf(!isHere).each([
  ["is an ISO image, such as of an installation DVD", at(0x8001, "CD001")],
  ["is compressed with xz", at(0, "\xfd7zXZ\0")],
])("a qcow2 image into which a file was converted that %s is refused", async (what, head) => {
  await using folder = await scratchFolder();
  const path = await qcow2With(folder.path, diskWith(head));
  const error = await failureOf(check("x64", path));
  expect(error.message).toBe(`Nodes cannot be created from ${path}: it ${what}.`);
});

test.skipIf(!isHere)("a disk with a boot loader passes, in both formats", async () => {
  await using folder = await scratchFolder();
  for (const head of [bootSector(), gptAt(512)]) {
    const path = await fileWith(folder.path, diskWith(head));
    expect(await check("x64", path)).toMatchObject({ format: "raw" });
    const converted = await qcow2With(folder.path, diskWith(head));
    expect(await check("x64", converted)).toMatchObject({ format: "qcow2" });
  }
  const forUefi = await fileWith(folder.path, diskWith(signatureOnly));
  expect(await check("arm64", forUefi)).toMatchObject({ format: "raw" });
});

test.skipIf(!isHere || Bun.which("qemu-io") === null)(
  "an image that a virtual machine writes to is refused with what to do, as is one that QEMU can't open",
  async () => {
    await using folder = await scratchFolder();
    const path = await qcow2With(folder.path, diskWith(bootSector()));
    const machine = Bun.spawn(["qemu-io", "-f", "qcow2", path], { stdin: "pipe", stdout: "pipe" });
    await machine.stdin.write("length\n");
    await machine.stdin.flush();
    // It has opened the image when it answers.
    await machine.stdout.getReader().read();
    expect(await failureOf(check("x64", path))).toMatchObject({
      id: "image-not-found",
      message: `Nodes cannot be created from ${path}: another program, such as a virtual machine, writes to it.`,
      hint: expect.stringContaining("Shut that down first"),
    });
    await machine.stdin.end();
    await machine.exited;
    expect(await check("x64", path)).toMatchObject({ format: "qcow2" });
    const broken = await fileWith(folder.path, at(0, "QFI\xfb\0\0\0\x09"));
    expect((await failureOf(check("x64", broken))).message).toMatch(/[^.]\.$/);
  },
);

/** Compressed, as publishers have it. */
async function qcow2With(folder: string, disk: Uint8Array): Promise<string> {
  const raw = await fileWith(folder, disk);
  const path = `${raw}.converted`;
  await Bun.$`qemu-img convert -c -f raw -O qcow2 ${raw} ${path}`.quiet();
  return path;
}
