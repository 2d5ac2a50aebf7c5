/**
 * A cluster as one file, for another computer, in the format of `zstd`: a skippable frame (RFC 8878, 3.1.2) with a manifest as JSON, then the compressed
 * contents of all parts, in the manifest's order. Each backend defines its parts and `facts`.
 */
import { createHash, randomUUID } from "node:crypto";
import { constants, type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Duplex, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import zlib from "node:zlib";
import { ClusterError, messageOf } from "../../errors.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import * as read from "../../model/reader.ts";
import { outside } from "../../outside-text.ts";
import { byteSource, gather } from "../../system/files/byte-source.ts";
import { cannotWrite, draftBeside } from "../../system/files/draft.ts";
import {
  errorCode,
  isAccessible,
  isDiskFull,
  isFileOrAbsent,
  writeAll,
} from "../../system/files/private-file.ts";
import { unreadableReason, parseJson } from "../../system/files/read-text.ts";
import { IncompleteArchive } from "../../system/files/tar.ts";
import { version } from "../../version.ts";
import {
  type ClusterFileReference,
  type SnapshotFile,
  clusterFileStart,
} from "../../model/snapshot.ts";

const { format, frameMagic, frameHeadBytes } = clusterFileStart;
const formatVersion = 1;
/** A thousand nodes need a fifth of it. */
const mostManifestBytes = 4 * 1024 * 1024;
/** Those of 256 KiB take a quarter longer to read, and the usual 16 KiB twice as long. */
const chunkBytes = 1024 * 1024;
/** The contents are compressed in blocks of this size, several at once. They take 1 % more space than without blocks. */
const blockBytes = 4 * 1024 * 1024;
const blocksAtOnce = 4;
const encryptedMark = "age-encryption.org/";

/** One part of the file: a disk, for example. */
export interface FilePart {
  /** A relative path, such as `master_0/disk.qcow2`. */
  readonly name: string;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

export interface Manifest {
  readonly backend: ClusterRecord["backend"];
  /** The version of the program that wrote the file. */
  readonly createdBy: string;
  readonly facts: unknown;
  readonly parts: readonly FilePart[];
  /** The checksum of all other fields, in hexadecimal. It detects damage, but doesn't authenticate the file. */
  readonly sha256: string;
}

export interface ClusterFile {
  readonly path: string;
  /** The path or URL as messages show it. */
  readonly shown: string;
  /** The expected checksum of the whole file, in lower-case hexadecimal; undefined: any. */
  readonly sha256?: string | undefined;
  readonly manifest: Manifest;
}

export const inMegabytes = (bytes: number): string => (bytes / 1e6).toFixed(0);

interface ZstdOptions {
  readonly chunkSize: number;
}

interface Zstd {
  readonly zstdCompress?: (
    contents: Uint8Array,
    options: ZstdOptions,
    callback: (error: Error | null, result: Uint8Array) => void,
  ) => void;
  readonly createZstdDecompress?: (options: ZstdOptions) => Duplex;
}

/** Throws `machine-not-set-up` if the library runs on a Node that is too old. */
function zstd(): Required<Zstd> {
  const { zstdCompress, createZstdDecompress } = zlib as Zstd;
  if (zstdCompress !== undefined && createZstdDecompress !== undefined)
    return { zstdCompress, createZstdDecompress };
  throw new ClusterError("machine-not-set-up", "This version of Node cannot read and write zstd.", {
    hint: "Use Node 22.15 or later, or Bun, or the command line.",
  });
}

/** A part whose length and checksum are known once it has been read. */
export interface PartToWrite {
  readonly nameOf: (sha256: string) => string;
  readonly contents: AsyncIterable<Uint8Array>;
}

/** Throws `machine-not-set-up` like `zstd`. */
export const createDecompressor = (): Duplex =>
  zstd().createZstdDecompress({ chunkSize: chunkBytes });

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
      hint: "Choose another file, or pass `replace`.",
    });
}

/**
 * Writes the file (0600) under another name, and renames it once it is complete. Removes what killed programs have left. Throws `bad-usage` if the file
 * can't be written, `capacity-lacking` if the disk is full, and `snapshot-unusable` if a part doesn't match its checksum.
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
    await using folder = await open(dirname(file.path), "r");
    await folder.sync();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ClusterError) throw error;
    throw diskFull(error, file.path) ?? cannotWrite(file.path, messageOf(error), error);
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
  const json = JSON.stringify({ ...content, sha256: checksum(content) });
  const text = Buffer.from(
    json + " ".repeat(Math.max(0, space - frameHeadBytes - Buffer.byteLength(json))),
  );
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUInt32LE(frameMagic);
  head.writeUInt32LE(text.length, 4);
  return Buffer.concat([head, text]);
}

const checksum = (content: unknown): string =>
  createHash("sha256").update(JSON.stringify(content)).digest("hex");

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

/** Yields the same chunks. Throws the failure at the end if the checksum differs. */
async function* verified(
  sha256: string,
  chunks: AsyncIterable<Uint8Array>,
  failure: () => ClusterError,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest("hex") !== sha256) throw failure();
}

/**
 * Reads and checks the manifest, but not the contents. Throws `bad-usage` if the file can't be read or holds no cluster, and `snapshot-unusable` if it
 * is damaged, encrypted, from a newer version or for another backend.
 */
export async function openClusterFile(
  { path, shown, sha256 }: Omit<ClusterFile, "manifest">,
  backend: Manifest["backend"],
): Promise<ClusterFile> {
  zstd();
  await using file = await openForReading(path, shown);
  const { manifest } = await readManifest(file, shown, backend);
  return { path, shown, sha256, manifest };
}

async function openForReading(path: string, shown: string): Promise<FileHandle> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if ((await file.stat()).isFile()) return file;
    await file.close();
  } catch (error) {
    throw unreadable(shown, unreadableReason(error), error);
  }
  throw unreadable(shown, "it is not a regular file", undefined);
}

const unreadable = (shown: string, reason: string, cause: unknown): ClusterError =>
  new ClusterError("bad-usage", `Cannot read ${outside(shown)}: ${reason}.`, {
    hint: "Pass a file that the snapshot command wrote, or a snapshot as CLUSTER:NAME.",
    cause,
  });

/** Returns the error for a file from which no cluster can be created. `why` follows the file's name. */
export const unusableFile = (shown: string, why: string, hint?: string): ClusterError =>
  new ClusterError("snapshot-unusable", `${outside(shown)} ${why}.`, {
    hint: hint ?? "Copy the file again, or save the snapshot again.",
    facts: { file: shown },
  });

/** Throws `snapshot-unusable` if the file holds another snapshot than the reference names. */
export function assertSnapshot(
  shown: string,
  { snapshot: wanted }: ClusterFileReference,
  found: string,
): void {
  if (wanted !== undefined && wanted !== found)
    throw unusableFile(
      shown,
      "holds another cluster than the one that is wanted",
      "Save the cluster again.",
    );
}

async function readManifest(
  file: FileHandle,
  shown: string,
  backend: Manifest["backend"],
): Promise<{ readonly manifest: Manifest; readonly contentsAt: number }> {
  const head = Buffer.alloc(encryptedMark.length);
  await file.read(head, 0, head.length, 0);
  if (head.toString("latin1") === encryptedMark)
    throw unusableFile(
      shown,
      "is encrypted with age",
      "Decrypt it: age --decrypt --output PLAIN_FILE FILE",
    );
  const length = head.readUInt32LE(4);
  const foreign = unusableFile(
    shown,
    "was not written by the snapshot command",
    "Pass a file that the snapshot command saved.",
  );
  if (head.readUInt32LE() !== frameMagic || length > mostManifestBytes) throw foreign;
  const text = Buffer.alloc(length);
  const { bytesRead } = await file.read(text, 0, length, frameHeadBytes);
  if (bytesRead < length) throw unusableFile(shown, "is incomplete");
  const found = parseJson(text.toString("utf8"));
  if (!read.isMapping(found) || found["format"] !== format) throw foreign;
  if ((read.integer(found["formatVersion"]) ?? 0) > formatVersion)
    throw unusableFile(
      shown,
      "was written by a newer version of this program",
      "Upgrade this program.",
    );
  const { sha256, ...content } = found;
  const manifest = sha256 === checksum(content) ? parseManifest(found) : undefined;
  if (manifest === undefined) throw unusableFile(shown, "is damaged: its manifest is not valid");
  if (manifest.backend !== backend) {
    const program = `cluster-${manifest.backend}`;
    throw unusableFile(shown, `is a cluster of ${program}`, `Create it with ${program}.`);
  }
  return { manifest, contentsAt: frameHeadBytes + length };
}

export const parseClusterParts: read.Reader<readonly FilePart[]> = read.list(
  read.object({
    name: read.matching(/^[a-z0-9_.-]{1,64}(?:\/[a-z0-9_.-]{1,64})?$/),
    bytes: read.refined(read.integer, (bytes) => (bytes < 0 ? undefined : bytes)),
    sha256: read.matching(/^[0-9a-f]{64}$/),
  }),
);

const parseManifest: read.Reader<Manifest> = read.object({
  backend: read.oneOf("container", "vm"),
  createdBy: read.matching(/^[\w.+-]{1,64}$/),
  facts: read.anything,
  parts: parseClusterParts,
  sha256: read.string,
});

/**
 * Reads all parts, in order. `take` must read each part to its end; by then the part has been compared with the manifest. Throws `snapshot-unusable` if
 * the file is damaged, incomplete, too long, or has been replaced since it was opened, and `capacity-lacking` if `take` finds a disk full.
 */
export async function readParts(
  { path, shown, sha256, manifest }: ClusterFile,
  take: (part: FilePart, chunks: AsyncIterable<Uint8Array>) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const file = await openForReading(path, shown);
  try {
    const { manifest: now, contentsAt } = await readManifest(file, shown, manifest.backend);
    const replaced = unusableFile(shown, "was replaced meanwhile", "Try again.");
    if (now.sha256 !== manifest.sha256) throw replaced;
    const whole = createHash("sha256");
    const contents = async function* (
      chunks: AsyncIterable<Uint8Array>,
    ): AsyncGenerator<Uint8Array> {
      let at = 0;
      for await (const chunk of chunks) {
        if (sha256 !== undefined) whole.update(chunk);
        yield chunk.subarray(Math.max(0, contentsAt - at));
        at += chunk.length;
      }
    };
    const takeAll = async (chunks: AsyncIterable<Uint8Array>): Promise<void> => {
      const source = byteSource(chunks);
      for (const part of manifest.parts) {
        const changed = (): ClusterError =>
          unusableFile(shown, `is damaged: ${part.name} has another checksum`);
        await take(part, verified(part.sha256, source.stream(part.bytes), changed));
      }
      if (!(await source.endsWithin(0)))
        throw unusableFile(shown, "is damaged: it is longer than its manifest says");
    };
    const bytes = file.createReadStream({ autoClose: false, highWaterMark: chunkBytes });
    await pipeline(bytes, contents, createDecompressor(), takeAll, { signal });
    // Somebody may have replaced the file since its checksum was compared.
    if (sha256 !== undefined && whole.digest("hex") !== sha256) throw replaced;
  } catch (error) {
    signal.throwIfAborted();
    throw readFailure(error, shown);
  } finally {
    await file.close();
  }
}

function readFailure(error: unknown, shown: string): unknown {
  if (error instanceof IncompleteArchive) return unusableFile(shown, "is incomplete");
  if (errorCode(error)?.startsWith("ZSTD_") === true)
    return unusableFile(shown, "is damaged: it cannot be decompressed");
  return diskFull(error, "the cluster's files") ?? error;
}

function diskFull(error: unknown, what: string): ClusterError | undefined {
  return isDiskFull(error)
    ? new ClusterError("capacity-lacking", `The disk is full: ${what} cannot be written.`, {
        hint: "Free some space.",
        cause: error,
      })
    : undefined;
}
