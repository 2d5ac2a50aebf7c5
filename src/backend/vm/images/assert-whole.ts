import { ClusterError } from "../../../errors.ts";
import type { Qemu } from "../qemu/qemu.ts";
import type { ImageFacts } from "./image-store.ts";
import { hasItsEnd } from "./has-its-end.ts";

const sectorBytes = 512;

/**
 * Throws `image-not-found` for an image that is damaged or lacks its end, such as after a download
 * or copy that broke off. Machines would boot from it, and fail at whatever they read first from
 * there.
 */
export async function assertWhole(
  qemu: Qemu,
  { path, format, sizeBytes, head }: ImageFacts & { readonly head: Buffer },
  signal: AbortSignal,
): Promise<void> {
  const isWhole =
    format === "qcow2"
      ? (await hasAllClusters(qemu, path, signal)) && (await hasItsEnd({ path, sizeBytes }, signal))
      : lastByteOfPartitions(head) <= sizeBytes;
  if (isWhole) return;
  throw new ClusterError(
    "image-not-found",
    `Nodes cannot be created from ${path}: it is damaged or incomplete.`,
    {
      hint: `Download or copy it again, and compare its checksum.${format === "qcow2" ? ` What is wrong with it: qemu-img check ${path}` : ""}`,
      facts: { image: path },
    },
  );
}

/** The status of `qemu-img check` for references to what isn't there. */
const corrupted = 2;

/** Reads the tables of clusters only. A machine may run from the image meanwhile, which never writes to it. */
async function hasAllClusters(qemu: Qemu, path: string, signal: AbortSignal): Promise<boolean> {
  const words = ["check", "-q", "-U", "-f", "qcow2", path];
  return (await qemu.image(words, signal)).status !== corrupted;
}

const protective = 0xee;

/**
 * Reads the partition table at the beginning of a disk, of either kind. Returns the size that the
 * disk needs for all partitions; 0 if there are none.
 */
export function lastByteOfPartitions(table: Buffer): number {
  const entries = [0, 1, 2, 3].map((index) => 446 + 16 * index);
  const kinds = entries.map((at) => table.readUInt8(at + 4));
  if (kinds.includes(protective)) return lastByteOfGpt(table);
  const ends = entries.map((at, index) =>
    kinds[index] === 0 ? 0 : table.readUInt32LE(at + 8) + table.readUInt32LE(at + 12),
  );
  return Math.max(...ends) * sectorBytes;
}

/** https://uefi.org/specs/UEFI/2.10/05_GUID_Partition_Table_Format.html */
function lastByteOfGpt(table: Buffer): number {
  if (table.toString("latin1", sectorBytes, sectorBytes + 8) !== "EFI PART") return 0;
  const count = table.readUInt32LE(sectorBytes + 80);
  const bytes = table.readUInt32LE(sectorBytes + 84);
  if (bytes < 128) return 0;
  const first = 2 * sectorBytes;
  const most = Math.min(count, Math.floor((table.length - first) / bytes));
  const ends = Array.from({ length: most }, (_, index) => first + index * bytes)
    .filter((at) => table.subarray(at, at + 16).some((byte) => byte !== 0))
    .map((at) => Number(table.readBigUInt64LE(at + 40)) + 1);
  return Math.max(0, ...ends) * sectorBytes;
}
