import { open } from "node:fs/promises";
import type { ImageFacts } from "./image-store.ts";

const sectorBytes = 512;
const headBytes = 80;

/** What a table's entries mean. */
interface Clusters {
  readonly bits: number;
  readonly bytes: number;
  readonly entryBytes: 8 | 16;
}

/**
 * Whether a qcow2 file, whose tables QEMU can read, has all that machines read from its last
 * cluster. `qemu-img check` lets a part of that be missing, because nobody reads what lies beyond
 * the end of the disk. https://www.qemu.org/docs/master/interop/qcow2.html
 */
export async function hasItsEnd(
  { path, sizeBytes }: Pick<ImageFacts, "path" | "sizeBytes">,
  signal: AbortSignal,
): Promise<boolean> {
  await using file = await open(path, "r");
  const readAt = async (at: number, count: number): Promise<Buffer> =>
    (await file.read(Buffer.alloc(count), 0, count, at)).buffer;
  const fileBytes = (await file.stat()).size;
  const head = await readAt(0, headBytes);
  const bits = head.readUInt32BE(20);
  const hasSubclusters = head.readUInt32BE(4) > 2 && (head.readUInt8(79) & 0x10) !== 0;
  const clusters: Clusters = { bits, bytes: 2 ** bits, entryBytes: hasSubclusters ? 16 : 8 };
  const tables = await readAt(Number(head.readBigUInt64BE(40)), 8 * head.readUInt32BE(36));
  const bytesPerTable = (clusters.bytes / clusters.entryBytes) * clusters.bytes;
  for (let number = 0; 8 * number < tables.length; number += 1) {
    signal.throwIfAborted();
    const place = placeIn(tables, 8 * number);
    if (place === 0) continue;
    if (place + clusters.bytes > fileBytes) return false;
    const table = await readAt(place, clusters.bytes);
    if (lastByteOf(table, clusters, sizeBytes - number * bytesPerTable) > fileBytes) return false;
  }
  return true;
}

/**
 * Returns where the data end that a table names, of a disk that has so many bytes from the table's
 * first cluster on.
 */
function lastByteOf(
  table: Buffer,
  { bits, bytes, entryBytes }: Clusters,
  diskBytes: number,
): number {
  let last = 0;
  for (let at = 0; at < table.length; at += entryBytes) {
    const place = placeIn(table, at);
    if (isCompressed(table, at)) last = Math.max(last, endOfCompressed(table, at, bits));
    else if (place > 0) {
      const used = entryBytes === 16 ? usedShare(table, at) : 1 - (table.readUInt8(at + 7) & 1);
      const needed = Math.min(used * bytes, diskBytes - (at / entryBytes) * bytes);
      last = Math.max(last, place + needed);
    }
  }
  return last;
}

const placeIn = (table: Buffer, at: number): number =>
  (table.readUInt32BE(at) & 0xff_ffff) * 2 ** 32 + ((table.readUInt32BE(at + 4) & ~511) >>> 0);

const isCompressed = (table: Buffer, at: number): boolean => (table.readUInt8(at) & 0x40) !== 0;

/** Such data end anywhere in their last sector, which the file need not have whole. */
function endOfCompressed(table: Buffer, at: number, clusterBits: number): number {
  const entry = BigInt.asUintN(62, table.readBigUInt64BE(at));
  const placeBits = 70 - clusterBits;
  const firstSector = BigInt.asUintN(placeBits, entry) / BigInt(sectorBytes);
  return Number(firstSector + (entry >> BigInt(placeBits))) * sectorBytes + 1;
}

/** The part of a cluster up to the last of its subclusters that is there. */
const usedShare = (table: Buffer, at: number): number =>
  (32 - Math.clz32(table.readUInt32BE(at + 12))) / 32;
