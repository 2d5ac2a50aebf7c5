import { quoted } from "../../errors.ts";
import {
  ArchiveProblem,
  IncompleteArchive,
  type TarHeader,
  blockBytes,
  damaged,
  paddingAfter,
  readPaxRecords,
  readTarHeader,
  untilZero,
} from "./tar.ts";

/** More than any real file system has. */
const mostEntries = 5_000_000;
/** The names of symbolic links are kept in memory. */
const mostLinkCharacters = 64 * 1024 * 1024;
/** Extended headers hold the attributes of a file, each of up to 64 KiB. */
const mostMetadataBytes = 2 * 1024 * 1024;
const longestPath = 4096;
/** A real folder has far fewer. */
const mostLevels = 200;

/** The types of entries that have contents; the others have none, whatever size their headers name. */
const withContents = new Set(["0", "\0"]);
/** Hard and symbolic links, devices, folders and pipes. */
const withoutContents = new Set(["1", "2", "3", "4", "5", "6"]);
/** Headers for the next entry: pax's, and those of GNU tar for a long target and a long name. */
const metadata = new Set(["x", "g", "K", "L"]);

/** Names are compared as they are, so each byte becomes a character. */
const asBytes = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

/**
 * Passes on an archive of a whole Linux system, such as a layer of an image, that an attacker may
 * have written and that another program unpacks. Throws `ArchiveProblem` as soon as an entry would
 * be unpacked anywhere but below the root: through a name, the target of a hard link, or a symbolic
 * link in the same archive; and for a damaged archive. Symbolic links may name anything, since they
 * lead somewhere only within the system. Takes ustar, pax and GNU tar's own format.
 */
export async function* checkedTar(
  archive: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const check = new TarCheck();
  for await (const chunk of archive) {
    check.take(chunk);
    yield chunk;
  }
  check.end();
}

class TarCheck {
  /** The beginning of the next block or metadata, of `#needed` bytes. */
  #held: Buffer = Buffer.alloc(0);
  #needed = blockBytes;
  /** How many bytes of contents follow. */
  #skipped = 0;
  /** The metadata that is being read; undefined while a header is read. */
  #metadata: { readonly type: string; readonly sizeBytes: number } | undefined;
  /** Metadata of the next entry. */
  #next: { path?: string; linkpath?: string; size?: string } = {};
  #hasEnded = false;
  #entries = 0;
  #linkCharacters = 0;
  readonly #links = new Set<string>();

  take(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length;) {
      if (this.#skipped > 0) {
        const skipped = Math.min(this.#skipped, chunk.length - at);
        this.#skipped -= skipped;
        at += skipped;
        continue;
      }
      const piece = chunk.subarray(at, at + this.#needed - this.#held.length);
      at += piece.length;
      this.#held = Buffer.concat([this.#held, piece]);
      if (this.#held.length < this.#needed) return;
      const bytes = this.#held;
      [this.#held, this.#needed] = [Buffer.alloc(0), blockBytes];
      if (this.#metadata === undefined) this.#readHeader(bytes);
      else this.#readMetadata(bytes, this.#metadata);
    }
  }

  end(): void {
    if (!this.#hasEnded || this.#held.length > 0) throw new IncompleteArchive();
  }

  #readHeader(block: Buffer): void {
    const own = readTarHeader(block, { decode: asBytes, takesGnu: true });
    if (own === undefined) {
      this.#hasEnded = true;
      return;
    }
    // Some programs read data behind the end as another archive.
    if (this.#hasEnded) throw damaged();
    if (metadata.has(own.type)) {
      if (own.sizeBytes > mostMetadataBytes) throw damaged();
      this.#metadata = own;
      this.#needed = padded(own.sizeBytes);
      if (this.#needed === 0) throw damaged();
      return;
    }
    const { path, linkpath, size } = this.#next;
    this.#next = {};
    if (size !== undefined && !/^\d{1,15}$/.test(size)) throw damaged();
    const entry = { ...own, name: path ?? own.name, linkTarget: linkpath ?? own.linkTarget };
    this.#checkEntry(entry);
    if (withContents.has(entry.type)) this.#skipped = padded(Number(size ?? own.sizeBytes));
  }

  #readMetadata(
    bytes: Buffer,
    { type, sizeBytes }: { readonly type: string; readonly sizeBytes: number },
  ): void {
    this.#metadata = undefined;
    const text = bytes.subarray(0, sizeBytes);
    if (type === "L") this.#next.path = asBytes(untilZero(text));
    else if (type === "K") this.#next.linkpath = asBytes(untilZero(text));
    else if (type === "x") {
      // GNU's records for sparse files name them again.
      if (/(?:^|\n)\d+ GNU\.sparse\./.test(asBytes(text)))
        throw new ArchiveProblem("it has sparse files");
      this.#next = { ...this.#next, ...readPaxRecords(text, asBytes) };
    }
  }

  #checkEntry({ type, name, linkTarget }: TarHeader): void {
    this.#entries += 1;
    if (this.#entries > mostEntries)
      throw new ArchiveProblem(`it has more than ${mostEntries} files and folders`);
    if (!withContents.has(type) && !withoutContents.has(type))
      throw new ArchiveProblem(`${quoted(name)} is of an unknown type`);
    const path = this.#pathOf(name);
    // A hard link to a symbolic link is the same symbolic link.
    if (type === "1" ? !this.#links.has(this.#pathOf(linkTarget)) : type !== "2") return;
    this.#links.add(path);
    this.#linkCharacters += path.length;
    if (this.#linkCharacters > mostLinkCharacters)
      throw new ArchiveProblem("it has too many symbolic links");
  }

  /** Returns the path below the root; empty for the root itself. */
  #pathOf(name: string): string {
    if (name.length > longestPath || name.includes("\0") || name.startsWith("/") || name === "")
      throw new ArchiveProblem(`${quoted(name)} is not a name within the archive`);
    const names = name.split("/").filter((part) => part !== "" && part !== ".");
    if (names.some((part) => part === ".." || /^\.wh\.\.{0,2}$/.test(part)))
      throw new ArchiveProblem(`${quoted(name)} leads out of the archive`);
    if (names.length > mostLevels)
      throw new ArchiveProblem(`${quoted(name)} has too many folders above it`);
    let above = "";
    for (const part of names.slice(0, -1)) {
      above = above === "" ? part : `${above}/${part}`;
      if (this.#links.has(above))
        throw new ArchiveProblem(`${quoted(name)} leads through a symbolic link`);
    }
    return names.join("/");
  }
}

const padded = (size: number): number => size + paddingAfter(size);
