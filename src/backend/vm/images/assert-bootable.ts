import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { ownedTemporaryFolder } from "../../../system/files/owned-folder.ts";
import type { Architecture } from "../qemu/architecture.ts";
import { type Qemu, qemuFailure } from "../qemu/qemu.ts";
import { assertWhole } from "./assert-whole.ts";
import {
  type ImageFacts,
  type LayeredImage,
  assertDiskIsLargeEnough,
  readImageFacts,
} from "./image-store.ts";
import { identityOf } from "./image-verification.ts";

/** As much of a file as shows what it is: an ISO image has its name in its seventeenth block. */
const headBytes = 17 * 2048;
const sectorBytes = 512;
/** Before the table of the partitions, the first sector holds the program that BIOS starts. */
const programBytes = 440;

interface Kind {
  readonly what: string;
  readonly hint: string;
}

const unpack = (program: string): string => `Unpack it: ${program}`;
const convert = "Convert it: qemu-img convert -O qcow2 IMAGE disk.qcow2";
const wholeDisk = "Pass the whole disk of an installed system, with its boot loader.";
const download =
  "Download it again, and look at the file: a server may have sent a message instead of the image.";

/**
 * Files that people take for disks, by the bytes at an offset.
 * https://en.wikipedia.org/wiki/List_of_file_signatures
 */
const kinds: readonly (Kind & { readonly at?: number; readonly bytes: string })[] = [
  { bytes: "\x1f\x8b", what: "is compressed with gzip", hint: unpack("gzip -d IMAGE") },
  { bytes: "\xfd7zXZ\0", what: "is compressed with xz", hint: unpack("xz -d IMAGE") },
  { bytes: "BZh", what: "is compressed with bzip2", hint: unpack("bzip2 -d IMAGE") },
  { bytes: "\x28\xb5\x2f\xfd", what: "is compressed with zstd", hint: unpack("zstd -d IMAGE") },
  { bytes: "\x04\x22\x4d\x18", what: "is compressed with lz4", hint: unpack("lz4 -d IMAGE") },
  { bytes: "LZIP", what: "is compressed with lzip", hint: unpack("lzip -d IMAGE") },
  { bytes: "PK\x03\x04", what: "is a ZIP archive", hint: unpack("unzip IMAGE") },
  { bytes: "7z\xbc\xaf\x27\x1c", what: "is a 7z archive", hint: unpack("7z x IMAGE") },
  { at: 257, bytes: "ustar", what: "is a tar archive", hint: unpack("tar -xf IMAGE") },
  { bytes: "KDMV", what: "is a disk of VMware", hint: convert },
  { bytes: "COWD", what: "is a disk of VMware", hint: convert },
  { bytes: "# Disk DescriptorFile", what: "describes a disk of VMware", hint: convert },
  { bytes: "vhdxfile", what: "is a disk of Hyper-V", hint: convert },
  { bytes: "conectix", what: "is a disk of Virtual PC", hint: convert },
  { at: 64, bytes: "\x7f\x10\xda\xbe", what: "is a disk of VirtualBox", hint: convert },
  { at: 54, bytes: "FAT1", what: "is a file system without a partition table", hint: wholeDisk },
  { at: 82, bytes: "FAT32", what: "is a file system without a partition table", hint: wholeDisk },
  { at: 3, bytes: "NTFS", what: "is a file system without a partition table", hint: wholeDisk },
  { at: 0x202, bytes: "HdrS", what: "is a Linux kernel", hint: wholeDisk },
  {
    at: 0x8001,
    bytes: "CD001",
    what: "is an ISO image, such as of an installation DVD",
    hint: "Use the distribution's cloud image, which is a disk with an installed system.",
  },
];

/** An image from which nodes can be created, as long as nobody touches its file. */
export interface CheckedImage extends ImageFacts {
  /** The `identityOf` the file that was checked. */
  readonly identity: string;
}

/**
 * Reads the facts about an image. Throws `image-not-found` or `bad-usage` if nodes with such a disk
 * can't be created from it.
 */
export async function checkImage(
  qemu: Qemu,
  { path, diskMegabytes }: { readonly path: string; readonly diskMegabytes: number },
  signal: AbortSignal,
): Promise<CheckedImage> {
  const identity = await identityOf(path);
  await assertIsDisk(path);
  const image = await readImageFacts(qemu, path, signal);
  const head = await diskHead(qemu, image, signal);
  assertBootable(qemu.architecture, image, head);
  await assertWhole(qemu, { ...image, head }, signal);
  assertDiskIsLargeEnough(image, diskMegabytes);
  return { ...image, identity };
}

/**
 * Throws `image-not-found` if a checked image has been replaced or changed since: QEMU opens it by
 * its name, with every file that it refers to by now.
 */
export async function assertStillChecked({ path, identity }: CheckedImage): Promise<void> {
  if ((await identityOf(path).catch(() => undefined)) === identity) return;
  throw notBootable(path, {
    what: "was replaced or changed after it had been checked",
    hint: "Try again while nobody changes that file or its folder.",
  });
}

/** Throws `image-not-found` for a file that is no disk, whatever its name says. Says what it is, and what to do. */
export async function assertIsDisk(path: string): Promise<void> {
  const found = await stat(path);
  // A pipe would be waited for, and a device may change below the nodes.
  if (!found.isFile())
    throw notBootable(path, {
      what: "is no regular file",
      hint: "Pass the path of a qcow2 or raw disk image. A device can be copied: qemu-img convert -O qcow2 IMAGE disk.qcow2",
    });
  if (found.size === 0) throw notBootable(path, { what: "is empty", hint: download });
  const head = await readHead(path);
  assertNoOtherKind(path, head);
  if (isText(head.toString("latin1", 0, Math.min(found.size, sectorBytes))))
    throw notBootable(path, { what: "is a text or a web page", hint: download });
}

function assertNoOtherKind(path: string, head: Buffer): void {
  const text = head.toString("latin1");
  const found = kinds.find(({ at = 0, bytes }) => text.startsWith(bytes, at));
  if (found !== undefined) throw notBootable(path, found);
}

/** Pages, messages of servers, and pointers of Git LFS. */
const isText = (text: string): boolean =>
  /^(?:\xef\xbb\xbf)?[\t\n\r\x20-\x7e\x80-\xff]+$/.test(text);

/** Some disks have larger sectors, which nothing but the place of their partition table shows. */
const largeSectorBytes = 4096;
const gptMark = "EFI PART";

/** Throws `image-not-found` for a disk that the firmware can't start from: it would wait for ever, and so would we. */
function assertBootable(
  { firmware, name }: Pick<Architecture, "firmware" | "name">,
  { path }: LayeredImage,
  head: Buffer,
): void {
  // Somebody may have converted a file that is no disk.
  assertNoOtherKind(path, head);
  const hint = `It must be the disk of an installed ${name} system with cloud-init that boots with ${firmware}.`;
  if (head.readUInt16LE(sectorBytes - 2) !== 0xaa55)
    throw notBootable(path, { what: "has no boot signature in its first sector", hint });
  const hasTableAt = (offset: number): boolean =>
    head.toString("latin1", offset, offset + gptMark.length) === gptMark;
  if (hasTableAt(largeSectorBytes) && !hasTableAt(sectorBytes))
    throw notBootable(path, {
      what: `has sectors of ${largeSectorBytes} bytes, and those of the machines' disks have ${sectorBytes}`,
      hint: `Build it, or download it, for disks with sectors of ${sectorBytes} bytes.`,
    });
  if (firmware === "BIOS" && head.subarray(0, programBytes).every((byte) => byte === 0))
    throw notBootable(path, {
      what: "has no boot loader for BIOS; perhaps it boots only with UEFI",
      hint,
    });
}

/** The first bytes of the disk, as a machine would read them. */
async function diskHead(
  qemu: Qemu,
  { path, format }: LayeredImage,
  signal: AbortSignal,
): Promise<Buffer> {
  if (format === "raw") return await readHead(path);
  await using folder = await ownedTemporaryFolder();
  const copy = join(folder.path, "head");
  const count = headBytes / sectorBytes;
  const sizes = [`bs=${sectorBytes}`, `count=${count}`];
  const words = ["dd", "-f", format, "-O", "raw", ...sizes, `if=${path}`, `of=${copy}`];
  const end = await qemu.image(words, signal);
  if (end.status !== 0) throw qemuFailure("qemu-img dd", end);
  return await readHead(copy);
}

/** Zeros follow the end of a shorter file. */
async function readHead(path: string): Promise<Buffer> {
  await using file = await open(path, "r");
  const head = Buffer.alloc(headBytes);
  await file.read(head, 0, headBytes, 0);
  return head;
}

const notBootable = (path: string, { what, hint }: Kind): ClusterError =>
  new ClusterError("image-not-found", `Nodes cannot be created from ${path}: it ${what}.`, {
    hint: hint.replace("IMAGE", path),
    facts: { image: path },
  });
