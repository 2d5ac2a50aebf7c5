/** Writes malicious archives, entry by entry. */
export interface RawEntry {
  readonly name: string;
  /** Default: a regular file. */
  readonly type?: string;
  readonly mode?: number;
  readonly linkTarget?: string;
  /** Names the format. Default: that of POSIX. */
  readonly magic?: string;
  readonly prefix?: string;
  readonly contents?: string | Uint8Array;
  /** The size in the header, instead of the real one. Bytes: the whole field. */
  readonly claimedSize?: number | Uint8Array;
}

export function rawEntry({
  name,
  type = "0",
  mode = 0o644,
  linkTarget = "",
  magic = "ustar\u000000",
  prefix = "",
  contents = "",
  ...more
}: RawEntry): Buffer {
  const block = Buffer.alloc(512);
  const body = Buffer.from(contents);
  const octal = (value: number, offset: number, digits: number): void => {
    block.write(value.toString(8).padStart(digits, "0"), offset, "latin1");
  };
  block.write(name, 0, 100);
  octal(mode, 100, 7);
  const size = more.claimedSize ?? body.length;
  if (typeof size === "number") octal(size, 124, 11);
  else block.set(size, 124);
  block.write(type, 156, "latin1");
  block.write(linkTarget, 157, 100);
  block.write(magic, 257, "latin1");
  block.write(prefix, 345, "latin1");
  block.fill(" ", 148, 156);
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  return Buffer.concat([block, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}

export const endOfArchive = Buffer.alloc(1024);

export const rawArchive = (...entries: readonly RawEntry[]): Buffer =>
  Buffer.concat([...entries.map(rawEntry), endOfArchive]);

export function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const digits = String(Buffer.byteLength(rest) + 2).length;
  return `${Buffer.byteLength(rest) + digits}${rest}`;
}
