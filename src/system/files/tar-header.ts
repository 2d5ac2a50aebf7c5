import { ArchiveProblem } from "./archive-problem.ts";

export const blockBytes = 512;

/** The header of an entry. Its texts are exactly those of the archive, and therefore not trustworthy. */
export interface TarHeader {
  readonly name: string;
  /** Permission bits, without setuid, setgid and sticky. */
  readonly mode: number;
  readonly sizeBytes: number;
  /** One character, as the format defines it. */
  readonly type: string;
  /** Empty unless the entry is a link. */
  readonly linkTarget: string;
}

/** The pax records that override fields of the next header. */
export interface PaxRecords {
  readonly path?: string;
  readonly linkpath?: string;
  readonly size?: string;
}

export const damaged = (): ArchiveProblem => new ArchiveProblem("the archive is damaged");

/** Reads a block. Undefined for the block of zeros that ends an archive. */
export function readTarHeader(block: Buffer): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  // The checksum counts its own eight bytes as spaces.
  const sum = block.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 0x20 : byte), 0);
  if (octal(block, 148, 8) !== sum || block.toString("latin1", 257, 263) !== "ustar\0") throw damaged();
  const [prefix, name] = [field(block, 345, 155), field(block, 0, 100)];
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    mode: octal(block, 100, 8) & 0o777,
    sizeBytes: octal(block, 124, 12),
    type: block.toString("latin1", 156, 157),
    linkTarget: field(block, 157, 100),
  };
}

/** Each record is `<length> <key>=<value>\n`, where the length counts all of it. Unknown keys are skipped. */
export function readPaxRecords(bytes: Buffer): PaxRecords {
  const found: { path?: string; linkpath?: string; size?: string } = {};
  for (let start = 0; start < bytes.length;) {
    const [, digits] = /^(\d{1,6}) /.exec(bytes.toString("latin1", start, start + 8)) ?? [];
    const end = start + Number(digits ?? 0);
    const equals = bytes.indexOf("=", start);
    if (digits === undefined || end > bytes.length || bytes[end - 1] !== newline || equals < 0 || equals >= end) {
      throw damaged();
    }
    const key = bytes.toString("latin1", start + digits.length + 1, equals);
    if (key === "path" || key === "linkpath" || key === "size") found[key] = utf8(bytes.subarray(equals + 1, end - 1));
    start = end;
  }
  return found;
}

const newline = 0x0a;

function field(block: Buffer, start: number, length: number): string {
  const bytes = block.subarray(start, start + length);
  const end = bytes.indexOf(0);
  return utf8(end === -1 ? bytes : bytes.subarray(0, end));
}

function octal(block: Buffer, start: number, length: number): number {
  const [, digits] = /^ *([0-7]+)[ \0]*$/.exec(block.toString("latin1", start, start + length)) ?? [];
  if (digits === undefined) throw damaged();
  return Number.parseInt(digits, 8);
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ArchiveProblem("a name in it is not valid UTF-8");
  }
}
