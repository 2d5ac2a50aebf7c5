/** What a release looks at in a macOS executable. Format: <mach-o/loader.h> of Apple's open sources. */

interface Segment {
  /** Where its load command begins. */
  readonly command: number;
  readonly fileOffset: number;
  readonly fileSize: number;
}

export interface MachO {
  readonly text: Segment;
  /** The last segment; the signature is its end. */
  readonly linkEdit: Segment;
  readonly signature: { readonly command: number; readonly offset: number; readonly size: number };
}

const magic64 = 0xfeedfacf;
const headerBytes = 32;
const loadSegment64 = 0x19;
const loadCodeSignature = 0x1d;

/** Throws where the bytes are no 64-bit executable with a place for a signature, or where a part lies outside the file. */
export function parseMachO(bytes: Buffer): MachO {
  if (bytes.length < headerBytes || bytes.readUInt32LE(0) !== magic64)
    throw new Error("is not a 64-bit Mach-O file");
  const segments = new Map<string, Segment>();
  const signatures: MachO["signature"][] = [];
  for (const command of loadCommands(bytes)) {
    const kind = bytes.readUInt32LE(command);
    if (kind === loadSegment64)
      segments.set(segmentName(bytes, command), segmentAt(bytes, command));
    if (kind === loadCodeSignature) {
      signatures.push({
        command,
        offset: bytes.readUInt32LE(command + 8),
        size: bytes.readUInt32LE(command + 12),
      });
    }
  }
  const [text, linkEdit, signature] = [
    segments.get("__TEXT"),
    segments.get("__LINKEDIT"),
    signatures[0],
  ];
  if (text === undefined || linkEdit === undefined)
    throw new Error("lacks the segment __TEXT or __LINKEDIT");
  if (signature === undefined || signatures.length > 1)
    throw new Error("has no place for a signature, or several");
  if (signature.offset + signature.size > bytes.length)
    throw new Error("ends before its signature does");
  if (linkEdit.fileOffset > signature.offset)
    throw new Error("has its signature outside __LINKEDIT");
  return { text, linkEdit, signature };
}

function* loadCommands(bytes: Buffer): Generator<number, void, undefined> {
  const end = headerBytes + bytes.readUInt32LE(20);
  if (end > bytes.length) throw new Error("ends within its load commands");
  for (let at = headerBytes, left = bytes.readUInt32LE(16); left > 0; left -= 1) {
    const size = bytes.readUInt32LE(at + 4);
    if (size < 8 || at + size > end)
      throw new Error("has a load command that exceeds the load commands' area");
    yield at;
    at += size;
  }
}

const segmentName = (bytes: Buffer, command: number): string =>
  bytes.toString("latin1", command + 8, command + 24).split("\0", 1)[0] ?? "";

const segmentAt = (bytes: Buffer, command: number): Segment => ({
  command,
  fileOffset: Number(bytes.readBigUInt64LE(command + 40)),
  fileSize: Number(bytes.readBigUInt64LE(command + 48)),
});
