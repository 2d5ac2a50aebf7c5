/** Which disk images lack a part, with QEMU's own program. */
import { expect, test } from "bun:test";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { checkImage } from "../../../../../src/backend/vm/images/assert-bootable.ts";
import { lastByteOfPartitions } from "../../../../../src/backend/vm/images/assert-whole.ts";
import { messageOf } from "../../../../../src/errors.ts";
import { architectureOf } from "../../../../../src/backend/vm/qemu/architecture.ts";
import { openQemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { bootableDisk } from "../../../../support/bootable-disk.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const qemu = openQemu(
  { environment: process.env, progress: silentProgress },
  architectureOf("x64"),
);
const lack = Bun.which("qemu-img") === null ? "there is no qemu-img" : undefined;
const check = async (path: string) => checkImage(qemu, { path, diskMegabytes: 64 }, neverAborted);
const megabyte = 1_048_576;

/** A disk of 8 MB whose only partition ends with it. */
function partitionedDisk(kind: "MBR" | "GPT"): Buffer {
  const disk = Buffer.alloc(8 * megabyte, 7);
  disk.fill(0, 0, 34 * 512);
  disk.set(bootableDisk().subarray(0, 512));
  const sectors = disk.length / 512;
  disk.writeUInt8(kind === "MBR" ? 0x83 : 0xee, 446 + 4);
  disk.writeUInt32LE(2048, 446 + 8);
  disk.writeUInt32LE(kind === "MBR" ? sectors - 2048 : 0xffff_ffff, 446 + 12);
  if (kind === "MBR") return disk;
  disk.write("EFI PART", 512, "latin1");
  disk.writeUInt32LE(128, 512 + 80);
  disk.writeUInt32LE(128, 512 + 84);
  // The second entry: tables have gaps.
  disk.fill(1, 1024 + 128, 1024 + 128 + 32);
  disk.writeBigUInt64LE(2048n, 1024 + 128 + 32);
  disk.writeBigUInt64LE(BigInt(sectors - 1), 1024 + 128 + 40);
  return disk;
}

test.skipIf(lack !== undefined).each(["MBR", "GPT"] as const)(
  `a raw disk that was cut off inside a partition is refused: %s (${lack ?? "here"})`,
  async (kind) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "disk.raw");
    await writeFile(path, partitionedDisk(kind));
    expect(await check(path)).toMatchObject({ format: "raw", sizeBytes: 8 * megabyte });
    await truncate(path, 5 * megabyte);
    expect(await failureOf(check(path))).toMatchObject({
      id: "image-not-found",
      message: `Nodes cannot be created from ${path}: it is damaged or incomplete.`,
    });
  },
);

test.skipIf(lack !== undefined)(
  `a qcow2 image that was cut off, or is encrypted or marked as damaged, is refused (${lack ?? "here"})`,
  async () => {
    await using folder = await scratchFolder();
    const [raw, path, locked] = ["disk.raw", "disk.qcow2", "locked.qcow2"].map((name) =>
      join(folder.path, name),
    ) as [string, string, string];
    await writeFile(raw, partitionedDisk("GPT"));
    await Bun.$`qemu-img convert -f raw -O qcow2 ${raw} ${path}`.quiet();
    const whole = Buffer.from(await Bun.file(path).arrayBuffer());
    expect(await check(path)).toMatchObject({ format: "qcow2" });
    await truncate(path, 5 * megabyte);
    expect((await failureOf(check(path))).message).toContain("it is damaged or incomplete");
    // The second of the features that a reader must know. See QEMU's docs/interop/qcow2.txt.
    whole[79] = 2;
    await writeFile(path, whole);
    expect((await failureOf(check(path))).message).toContain("it is marked as damaged");
    const secret = ["--object", "secret,id=key,data=secret", "-f", "qcow2"];
    // LUKS would first measure the processor, which fails on one that is busy.
    const encryption = "encrypt.format=aes,encrypt.key-secret=key";
    await Bun.$`qemu-img create ${secret} -o ${encryption} ${locked} 1M`.quiet();
    expect((await failureOf(check(locked))).message).toContain("it is encrypted");
  },
);

/** The number of bytes that the file may lose until it lacks something. */
const spareBytes = async (path: string): Promise<number> => {
  const whole = Buffer.from(await Bun.file(path).arrayBuffer());
  for (const lost of [0, 1, 511, 512, 4_096, 32_768, 65_535]) {
    await writeFile(path, whole.subarray(0, whole.length - lost));
    const why = await check(path).then(() => "", messageOf);
    await writeFile(path, whole);
    if (why === "") continue;
    expect(why).toContain("it is damaged or incomplete");
    return lost;
  }
  return Infinity;
};

test.skipIf(lack !== undefined).each([
  ["usual", "", 8 * megabyte, 1],
  ["with larger clusters", "-o cluster_size=2M", 8 * megabyte, 1],
  ["with subclusters", "-o extended_l2=on", 8 * megabyte, 1],
  ["of version 2", "-o compat=0.10", 8 * megabyte, 1],
  // Of the last cluster, the disk has 512 bytes.
  ["whose disk ends within a cluster", "", 8 * megabyte + 512, 65_535],
  // The last sector may have anything from one byte on.
  ["compressed", "-c", 8 * megabyte, 512],
])(
  `a qcow2 image that lacks a part of its last cluster is refused: %s (${lack ?? "here"})`,
  async (_, options, bytes, lost) => {
    await using folder = await scratchFolder();
    const [raw, path] = [join(folder.path, "disk.raw"), join(folder.path, "disk.qcow2")];
    const disk = Buffer.alloc(bytes, 7);
    // Compressed, the last cluster still takes some sectors.
    crypto.getRandomValues(disk.subarray(bytes - 30_000));
    disk.set(partitionedDisk("GPT").subarray(0, 34 * 512));
    await writeFile(raw, disk);
    await Bun.$`qemu-img convert -f raw -O qcow2 ${options.split(" ").filter(Boolean)} ${raw} ${path}`.quiet();
    expect(await spareBytes(path)).toBe(lost);
  },
);

test("a disk without partitions, or with a damaged table, has no size to compare", () => {
  expect(lastByteOfPartitions(Buffer.from(bootableDisk().subarray(0, 34 * 512)))).toBe(0);
  const damaged = partitionedDisk("GPT").subarray(0, 34 * 512);
  damaged.fill(0, 512, 1024);
  expect(lastByteOfPartitions(damaged)).toBe(0);
  const strange = partitionedDisk("GPT").subarray(0, 34 * 512);
  strange.writeUInt32LE(0xffff_ffff, 512 + 80);
  strange.writeUInt32LE(0xffff_ffff, 512 + 84);
  expect(lastByteOfPartitions(strange)).toBe(0);
});
