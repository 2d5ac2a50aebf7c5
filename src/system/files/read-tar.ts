import { quoted } from "../../errors.ts";
import { type ArchiveLimits, ArchiveProblem } from "./archive-problem.ts";
import { byteSource, type ByteSource } from "./byte-source.ts";
import { blockBytes, damaged, type PaxRecords, readPaxRecords, readTarHeader, type TarHeader } from "./tar-header.ts";

export interface TarEntry {
  readonly kind: "file" | "folder" | "link";
  /** Exactly as in the archive, and therefore not trustworthy. */
  readonly name: string;
  /** Permission bits, without setuid, setgid and sticky. */
  readonly mode: number;
  /** Exactly as in the archive; empty unless the entry is a link. */
  readonly linkTarget: string;
  /** Empty unless the entry is a file. Whatever is left unread is skipped when the next entry is read. */
  readonly contents: AsyncIterable<Uint8Array>;
}

/**
 * Reads a POSIX archive (ustar with pax records) that an attacker may have written. Throws `ArchiveProblem` for a damaged archive, for one beyond the
 * limits, and for entries other than regular files, folders and symbolic links. Source of the format:
 * https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html
 */
export async function* readTar(
  archive: AsyncIterable<Uint8Array>,
  limits: ArchiveLimits,
): AsyncGenerator<TarEntry, void, undefined> {
  const source = byteSource(archive);
  const sum = { entries: 0, names: 0, bytes: 0 };
  for (;;) {
    const { header, records } = await nextHeader(source);
    if (header === undefined) break;
    const { entry, sizeBytes } = entryOf(header, records);
    sum.entries += 1;
    sum.names += entry.name.length + entry.linkTarget.length;
    sum.bytes += sizeBytes;
    if (sum.entries > limits.entries) throw new ArchiveProblem(`it has more than ${limits.entries} files and folders`);
    if (sum.names > mostNameCharacters) throw new ArchiveProblem("the names in it are too long");
    if (sum.bytes > limits.totalBytes) throw new ArchiveProblem(`it has more than ${limits.totalBytes} bytes`);
    const contents = source.stream(sizeBytes);
    yield { ...entry, contents };
    for await (const _unread of contents);
    await source.take(paddingAfter(sizeBytes));
  }
  if (!(await source.endsWithin(mostTrailingBytes))) throw damaged();
}

const mostMetadataBytes = 64 * 1024;
/** A limit for all names together, because they are kept in memory while the archive is unpacked. */
const mostNameCharacters = 32 * 1024 * 1024;
/** How many extended headers may precede an entry; a writer needs one, or two at the start of the archive. */
const mostExtendedHeaders = 4;
/** Writers fill the last record, which is 10 KiB by default. */
const mostTrailingBytes = 1024 * 1024;

const paddingAfter = (size: number): number => (blockBytes - (size % blockBytes)) % blockBytes;

/** The header is undefined at the end of the archive. */
async function nextHeader(
  source: ByteSource,
): Promise<{ readonly header: TarHeader | undefined; readonly records: PaxRecords }> {
  let records: PaxRecords = {};
  for (let count = 0; count <= mostExtendedHeaders; count += 1) {
    const header = readTarHeader(await source.take(blockBytes));
    if (header?.type !== "x" && header?.type !== "g") return { header, records };
    if (header.sizeBytes > mostMetadataBytes) throw damaged();
    const bytes = await source.take(header.sizeBytes);
    await source.take(paddingAfter(header.sizeBytes));
    // Records for the whole archive can't name or size any single entry.
    if (header.type === "x") records = readPaxRecords(bytes);
  }
  throw damaged();
}

const kinds: Readonly<Record<string, TarEntry["kind"]>> = { "0": "file", "\0": "file", "2": "link", "5": "folder" };

function entryOf(
  header: TarHeader,
  { path, linkpath, size }: PaxRecords,
): { readonly entry: Omit<TarEntry, "contents">; readonly sizeBytes: number } {
  const kind = kinds[header.type];
  const name = path ?? header.name;
  if (kind === undefined) throw new ArchiveProblem(`${quoted(name)} is neither a file, a folder nor a link`);
  if (size !== undefined && !/^\d{1,15}$/.test(size)) throw damaged();
  return {
    entry: { kind, name, mode: header.mode, linkTarget: kind === "link" ? (linkpath ?? header.linkTarget) : "" },
    sizeBytes: kind === "file" ? Number(size ?? header.sizeBytes) : 0,
  };
}
