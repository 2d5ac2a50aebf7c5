import { ClusterError } from "../../errors.ts";

/** A file to put into an archive. */
export interface TarFile {
  /** Relative, with `/`. A name that ends with `/` is a folder, whose size is 0. */
  readonly name: string;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
  readonly modifiedMs: number;
  readonly sizeBytes: number;
  /**
   * Yields exactly `sizeBytes` bytes. Any other number fails as `transfer-failed`, because the header has already been
   * sent.
   */
  readonly contents: () => AsyncIterable<Uint8Array>;
}

/**
 * A POSIX archive (ustar, with pax records if a name, size or time needs them) of regular files and folders that belong
 * to root. The same files give the same bytes. Source of the format:
 * https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html
 */
export async function* tarStream(files: Iterable<TarFile>): AsyncGenerator<Uint8Array, void, undefined> {
  for (const file of files) {
    yield headers(file);
    yield* exactly(file);
    yield padding(file.sizeBytes);
  }
  yield Buffer.alloc(2 * blockBytes);
}

const blockBytes = 512;
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
  if (file.modifiedMs > 0 && file.modifiedMs % 1000 !== 0) records.push(["mtime", (file.modifiedMs / 1000).toFixed(6)]);
  const name = isPlain ? file.name : "long-name";
  const own = header({
    name,
    type: file.name.endsWith("/") ? "5" : "0",
    mode: file.mode,
    size: file.sizeBytes > largestSize ? 0 : file.sizeBytes,
    ms: file.modifiedMs,
  });
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
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length += 1;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

const padding = (size: number): Uint8Array => Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes);

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
