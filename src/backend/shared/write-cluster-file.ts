import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { type SnapshotFile, clusterFileStart } from "../../model/snapshot.ts";
import { gather, sha256OfJson } from "../../system/files/byte-source.ts";
import { cannotWrite, draftBeside } from "../../system/files/draft.ts";
import {
  isAccessible,
  isFileOrAbsent,
  syncFolder,
  writeAll,
} from "../../system/files/private-file.ts";
import { version } from "../../version.ts";
import {
  type FilePart,
  type Manifest,
  chunkBytes,
  diskFull,
  formatVersion,
  mostManifestBytes,
  zstd,
} from "./cluster-file.ts";

const { format, frameMagic, frameHeadBytes } = clusterFileStart;
/**
 * The contents are compressed in blocks of this size, several at once. They take 1 % more space
 * than without blocks.
 */
const blockBytes = 4 * 1024 * 1024;
const blocksAtOnce = 4;

/** A part whose length and checksum are known once it has been read. */
export interface PartToWrite {
  readonly nameOf: (sha256: string) => string;
  readonly contents: AsyncIterable<Uint8Array>;
}

export interface FileToWrite extends Omit<SnapshotFile, "withoutBase"> {
  readonly backend: Manifest["backend"];
  readonly facts: unknown;
  /** Each part is read to its end before the next one is requested. */
  readonly parts: AsyncIterable<PartToWrite>;
  readonly mostParts: number;
  /** A folder that only this user can read, for data before its encryption. */
  readonly privateFolder: string;
  /** Called with the number of bytes of all parts that have been read so far. */
  readonly onProgress: (bytes: number) => void;
}

/** Yields parts whose checksums are known. Throws `snapshot-unusable` after a part that has changed. */
export async function* knownParts(
  parts: readonly (FilePart & { readonly contents: () => AsyncIterable<Uint8Array> })[],
): AsyncGenerator<PartToWrite, void, undefined> {
  for (const part of parts) {
    const nameOf = (sha256: string): string => {
      if (sha256 === part.sha256) return part.name;
      throw new ClusterError(
        "snapshot-unusable",
        `The snapshot is damaged: ${part.name} has changed.`,
        {
          hint: "Delete the snapshot, and make another one.",
        },
      );
    };
    yield { nameOf, contents: part.contents() };
  }
}

/** Throws `bad-usage` unless a file may be written at the path. */
export async function assertWritable(path: string, replaces: boolean): Promise<void> {
  if (!(await isFileOrAbsent(path).catch(() => false)))
    throw cannotWrite(path, "it is not a regular file");
  if (!replaces && (await isAccessible(path)))
    throw new ClusterError("bad-usage", `${path} exists already.`, {
      hint: `Choose another file, or pass ${optionName("replace")}.`,
    });
}

/**
 * Writes the file (0600) under another name, and renames it once it is complete. Removes what
 * killed programs have left. Throws `bad-usage` if the file can't be written, `capacity-lacking` if
 * the disk is full, and `snapshot-unusable` if a part doesn't match its checksum.
 */
export async function writeClusterFile(file: FileToWrite, signal: AbortSignal): Promise<void> {
  try {
    await using draft = await draftBeside(file.path);
    await using output = await open(draft.path, "wx+", 0o600);
    if (file.encrypt === undefined) await writeContents(file, output, signal);
    else await writeEncrypted(file, { encrypt: file.encrypt, draft: draft.path }, signal);
    await output.sync();
    // Another program may have created a file there meanwhile.
    await assertWritable(file.path, file.replaces);
    await rename(draft.path, file.path);
    await syncFolder(dirname(file.path));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ClusterError) throw error;
    throw diskFull(error, file.path) ?? cannotWrite(file.path, error);
  }
}

async function writeEncrypted(
  file: FileToWrite,
  {
    encrypt,
    draft,
  }: { readonly encrypt: NonNullable<SnapshotFile["encrypt"]>; readonly draft: string },
  signal: AbortSignal,
): Promise<void> {
  // If encryption doesn't work, fail before reading the snapshot.
  await encrypt(Readable.from([]), draft, signal);
  const plain = join(file.privateFolder, `plain-${randomUUID()}`);
  await using contents = await open(plain, "wx+", 0o600);
  // An unlinked file disappears when this process ends.
  await rm(plain);
  await writeContents(file, contents, signal).catch((error: unknown) => {
    throw diskFull(error, `the unencrypted copy in ${file.privateFolder}`) ?? error;
  });
  await encrypt(contents.createReadStream({ start: 0, autoClose: false }), draft, signal);
}

/** Reserves space for the manifest, which comes first in the file, and fills it in when the checksums are known. */
async function writeContents(
  file: FileToWrite,
  output: FileHandle,
  signal: AbortSignal,
): Promise<void> {
  const largest = { name: "x".repeat(129), bytes: Number.MAX_SAFE_INTEGER, sha256: "0".repeat(64) };
  const space = manifestFrame(
    file,
    Array.from({ length: file.mostParts }, () => largest),
    0,
  ).length;
  if (space > mostManifestBytes) throw new RangeError("A cluster file has too many parts");
  await writeAll(output, Buffer.alloc(space));
  const parts: FilePart[] = [];
  const save = async (chunks: AsyncIterable<Uint8Array>): Promise<void> => {
    for await (const chunk of chunks) await writeAll(output, chunk);
  };
  await pipeline(gather(partContents(file, parts), blockBytes), compressed, save, { signal });
  await writeAll(output, manifestFrame(file, parts, space), 0);
}

/** Compresses each block to a frame. */
function compressed(blocks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const compress = promisify(zstd().zstdCompress);
  const toFrame = async (block: Uint8Array): Promise<Uint8Array> =>
    compress(block, { chunkSize: chunkBytes });
  return Readable.from(blocks).map(toFrame, { concurrency: blocksAtOnce });
}

/** Pads the manifest with blanks, which JSON allows at its end. */
function manifestFrame(
  { backend, facts }: FileToWrite,
  parts: readonly FilePart[],
  space: number,
): Buffer {
  const content = { format, formatVersion, backend, createdBy: version, facts, parts };
  const json = JSON.stringify({ ...content, sha256: sha256OfJson(content) });
  const text = Buffer.from(
    json + " ".repeat(Math.max(0, space - frameHeadBytes - Buffer.byteLength(json))),
  );
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUInt32LE(frameMagic);
  head.writeUInt32LE(text.length, 4);
  return Buffer.concat([head, text]);
}

async function* partContents(
  { parts, onProgress }: FileToWrite,
  written: FilePart[],
): AsyncGenerator<Uint8Array, void, undefined> {
  const seen = { bytes: 0 };
  for await (const { nameOf, contents } of parts) {
    const hash = createHash("sha256");
    const before = seen.bytes;
    for await (const chunk of contents) {
      hash.update(chunk);
      yield chunk;
      seen.bytes += chunk.length;
      onProgress(seen.bytes);
    }
    const sha256 = hash.digest("hex");
    written.push({ name: nameOf(sha256), bytes: seen.bytes - before, sha256 });
  }
}
