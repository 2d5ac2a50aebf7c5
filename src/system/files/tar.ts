import { Readable } from "node:stream";
import { ClusterError, OwnError } from "../../errors.ts";

/** A file to put into an archive. */
export interface TarFile {
  /** Relative, with `/`. A name that ends with `/` is a folder, whose size is 0. */
  readonly name: string;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
  readonly modifiedMs: number;
  readonly sizeBytes: number;
  /**
   * Yields exactly `sizeBytes` bytes. Any other number fails as `transfer-failed`, because the
   * header has already been sent.
   */
  readonly contents: () => AsyncIterable<Uint8Array>;
}

/** A file whose contents are this text. */
export function textFile(
  file: Pick<TarFile, "name" | "mode" | "modifiedMs"> & { readonly text: string },
): TarFile {
  const { text, ...rest } = file;
  const bytes = Buffer.from(text);
  return { ...rest, sizeBytes: bytes.length, contents: () => Readable.from([bytes]) };
}

/**
 * A POSIX archive (ustar, with pax records if a name, size or time needs them) of regular files and folders that belong
 * to root. The same files give the same bytes. Source of the format:
 * https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html
 */
export async function* tarStream(
  files: Iterable<TarFile>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (const file of files) yield* tarEntry(file);
  yield archiveEnd;
}

/** One file of such an archive, which ends with `archiveEnd`. */
export async function* tarEntry(file: TarFile): AsyncGenerator<Uint8Array, void, undefined> {
  yield headers(file);
  yield* exactly(file);
  yield padding(file.sizeBytes);
}

export const blockBytes = 512;
export const archiveEnd: Uint8Array = Buffer.alloc(2 * blockBytes);

const longestName = 100;
/** The largest number of eleven octal digits. */
const largestSize = 0o77777777777;

function headers(file: TarFile): Uint8Array {
  const records: [key: string, value: string][] = [];
  // A plain name field has no character set and little room; pax records have both.
  const isPlain = file.name.length <= longestName && /^[\x21-\x7e ]+$/.test(file.name);
  if (!isPlain) records.push(["path", file.name]);
  if (file.sizeBytes > largestSize) records.push(["size", String(file.sizeBytes)]);
  // The header's own field has whole seconds.
  if (file.modifiedMs > 0 && file.modifiedMs % 1000 !== 0)
    records.push(["mtime", (file.modifiedMs / 1000).toFixed(6)]);
  const name = isPlain ? file.name : "long-name";
  const type = file.name.endsWith("/") ? "5" : "0";
  const size = file.sizeBytes > largestSize ? 0 : file.sizeBytes;
  const own = header({ name, type, mode: file.mode, size, ms: file.modifiedMs });
  if (records.length === 0) return own;
  const body = Buffer.concat(records.map(([key, value]) => paxRecord(key, value)));
  const extended = header({ name: "pax", type: "x", mode: 0o644, size: body.length, ms: 0 });
  return Buffer.concat([extended, body, padding(body.length), own]);
}

interface HeaderFields {
  readonly name: string;
  readonly type: "0" | "5" | "x";
  readonly mode: number;
  readonly size: number;
  readonly ms: number;
}

function header({ name, type, mode, size, ms }: HeaderFields): Uint8Array {
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, offset: number, digits: number): void => {
    block.write(value.toString(8).padStart(digits, "0"), offset, "latin1");
  };
  block.write(name, 0, "latin1");
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(Math.min(Math.max(Math.floor(ms / 1000), 0), largestSize), 136, 11);
  block.write(type, 156, "latin1");
  block.write("ustar\u000000root", 257, "latin1");
  block.write("root", 297, "latin1");
  // The checksum counts its own eight bytes as spaces.
  block.fill(" ", 148, 156);
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  block[154] = 0;
  return block;
}

/** `<length> <key>=<value>\n`, where the length counts its own digits. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`);
  let length = rest.length;
  while (String(length).length + rest.length !== length) length += 1;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

/** How many bytes follow contents of this size, up to the next block. */
export const paddingAfter = (size: number): number =>
  (blockBytes - (size % blockBytes)) % blockBytes;
const padding = (size: number): Uint8Array => Buffer.alloc(paddingAfter(size));

async function* exactly(file: TarFile): AsyncGenerator<Uint8Array, void, undefined> {
  let sent = 0;
  for await (const chunk of file.contents()) {
    sent += chunk.length;
    if (sent > file.sizeBytes) break;
    yield chunk;
  }
  if (sent !== file.sizeBytes) {
    throw new ClusterError("transfer-failed", `${file.name} changed while it was being sent.`, {
      hint: "Try again while no other program changes that file.",
      transient: true,
    });
  }
}

/** The header of an entry. Its texts are exactly those of the archive, and therefore not trustworthy. */
export interface TarHeader {
  readonly name: string;
  /** Permission bits, without setuid, setgid and sticky. */
  readonly mode: number;
  readonly sizeBytes: number;
  /** One character, as the format defines it. */
  readonly type: string;
  /** Means nothing unless the entry is a link. */
  readonly linkTarget: string;
}

/** The pax records that override fields of the next header. */
export interface PaxRecords {
  readonly path?: string;
  readonly linkpath?: string;
  readonly size?: string;
}

export const damaged = (): ArchiveProblem => new ArchiveProblem("the archive is damaged");

interface HeaderForm {
  readonly decode: Decode;
  /** Whether GNU tar's own format counts as well. */
  readonly takesGnu: boolean;
}

type Decode = (bytes: Uint8Array) => string;

/** Reads a block. Undefined for a block of zeros, as at the end of an archive. */
export function readTarHeader(
  block: Buffer,
  { decode, takesGnu }: HeaderForm = { decode: utf8, takesGnu: false },
): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  const magic = block.toString("latin1", 257, 263);
  const isUstar = magic === "ustar\0";
  if (!hasChecksum(block) || !(isUstar || (takesGnu && magic === "ustar "))) throw damaged();
  const field = (start: number, length: number): string =>
    decode(untilZero(block.subarray(start, start + length)));
  // GNU tar uses these bytes for something else.
  const prefix = isUstar ? field(345, 155) : "";
  const name = field(0, 100);
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    mode: readOctal(block, 100, 8) & 0o777,
    sizeBytes: takesGnu && block[124] === 0x80 ? readBinarySize(block) : readOctal(block, 124, 12),
    type: block.toString("latin1", 156, 157),
    linkTarget: field(157, 100),
  };
}

/** Whether a header is undamaged. The checksum counts its own eight bytes as spaces. */
const hasChecksum = (block: Buffer): boolean =>
  readOctal(block, 148, 8) ===
  block.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 0x20 : byte), 0);

/** Each record is `<length> <key>=<value>\n`, where the length counts all of it. Unknown keys are skipped. */
export function readPaxRecords(bytes: Buffer, decode: Decode = utf8): PaxRecords {
  const found: { path?: string; linkpath?: string; size?: string } = {};
  for (let start = 0; start < bytes.length;) {
    const [, digits = ""] = /^(\d{1,6}) /.exec(bytes.toString("latin1", start, start + 8)) ?? [];
    const record = bytes.subarray(start, start + Number(digits));
    const equals = record.indexOf("=");
    if (record.length !== Number(digits) || record.at(-1) !== newline || equals === -1)
      throw damaged();
    const key = record.toString("latin1", digits.length + 1, equals);
    if (key === "path" || key === "linkpath" || key === "size")
      found[key] = decode(record.subarray(equals + 1, -1));
    start += record.length;
  }
  return found;
}

const newline = 0x0a;

export function untilZero(bytes: Buffer): Buffer {
  const end = bytes.indexOf(0);
  return end === -1 ? bytes : bytes.subarray(0, end);
}

function readOctal(block: Buffer, start: number, length: number): number {
  const [, digits] =
    /^ *([0-7]+)[ \0]*$/.exec(block.toString("latin1", start, start + length)) ?? [];
  if (digits === undefined) throw damaged();
  return Number.parseInt(digits, 8);
}

/** Large sizes are binary, with the highest bit set. */
function readBinarySize(block: Buffer): number {
  const size = block.readBigUInt64BE(128);
  if (block.readUIntBE(125, 3) !== 0 || size > Number.MAX_SAFE_INTEGER) throw damaged();
  return Number(size);
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ArchiveProblem("a name in it is not valid UTF-8");
  }
}

/**
 * Why an archive is rejected, as the end of a sentence: "the archive is damaged". The caller adds
 * where the archive comes from.
 */
export class ArchiveProblem extends OwnError {
  override readonly name: string = "ArchiveProblem";
}

/** The archive ended too early. Its writer may have failed, and may have said why. */
export class IncompleteArchive extends ArchiveProblem {
  override readonly name = "IncompleteArchive";

  constructor() {
    super("the archive is incomplete");
  }
}

/** Limits for an archive, so that it fills neither memory nor disk. */
export interface ArchiveLimits {
  readonly entries: number;
  readonly totalBytes: number;
}
