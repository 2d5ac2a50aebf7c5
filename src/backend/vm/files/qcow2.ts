import { open } from "node:fs/promises";

/** The bytes of a header of version 3 that are looked at. */
const headBytes = 80;
const magic = "QFI\u00fb";
/** A disk that wasn't closed, compression by zstd, and subclusters. Not: corrupt, contents in another file, and what later versions of QEMU add. */
const allowedFeatures = 0b1_1001n;

/** What the head of a disk in the qcow2 format says about other files. */
type Qcow2Facts =
  | { readonly hasBacking: boolean; readonly problem?: undefined }
  | { readonly problem: string };

/**
 * Reads the head of a disk from outside, before QEMU opens it: QEMU would open every file that it names
 * (https://www.qemu.org/docs/master/interop/qcow2.html).
 */
export async function readQcow2(path: string): Promise<Qcow2Facts> {
  await using file = await open(path, "r");
  const head = Buffer.alloc(headBytes);
  const { bytesRead } = await file.read(head, 0, headBytes, 0);
  if (bytesRead < headBytes || head.toString("latin1", 0, 4) !== magic)
    return { problem: "is not a qcow2 disk" };
  const formatVersion = head.readUInt32BE(4);
  if (formatVersion !== 2 && formatVersion !== 3)
    return { problem: "is of an unknown version of qcow2" };
  if (head.readUInt32BE(32) !== 0) return { problem: "is encrypted" };
  const features = formatVersion === 3 ? head.readBigUInt64BE(72) : 0n;
  if ((features & ~allowedFeatures) !== 0n)
    return { problem: "refers to another file, or needs what QEMU may not have" };
  return { hasBacking: head.readBigUInt64BE(8) !== 0n || head.readUInt32BE(16) !== 0 };
}
