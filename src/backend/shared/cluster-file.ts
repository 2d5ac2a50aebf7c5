/**
 * A cluster as one file, for another computer, in the format of `zstd`: a skippable frame (RFC
 * 8878, 3.1.2) with a manifest as JSON, then the compressed contents of all parts, in the
 * manifest's order. Each backend defines its parts and `facts`.
 */
import { createHash } from "node:crypto";
import { constants, type FileHandle, open } from "node:fs/promises";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import zlib from "node:zlib";
import { ClusterError } from "../../errors.ts";
import { commandName } from "../../references.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import * as read from "../../model/reader.ts";
import { sha256Rule } from "../../model/rule.ts";
import { outside } from "../../outside-text.ts";
import { megabytesText } from "../../system/amounts.ts";
import { byteSource, sha256OfJson } from "../../system/files/byte-source.ts";
import { errorCode, isDiskFull } from "../../system/files/private-file.ts";
import { unreadableReason, parseJson } from "../../system/files/read-text.ts";
import { IncompleteArchive } from "../../system/files/tar.ts";
import type { Step } from "../../system/runtime.ts";
import { type ClusterFileReference, clusterFileStart } from "../../model/snapshot.ts";

const { format, frameMagic, frameHeadBytes } = clusterFileStart;
export const formatVersion = 1;
/** A thousand nodes need a fifth of it. */
export const mostManifestBytes = 4 * 1024 * 1024;
/** Those of 256 KiB take a quarter longer to read, and the usual 16 KiB twice as long. */
export const chunkBytes = 1024 * 1024;
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

export const bytesOf = (parts: readonly Pick<FilePart, "bytes">[]): number =>
  parts.reduce((sum, { bytes }) => sum + bytes, 0);

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
export function zstd(): Required<Zstd> {
  const { zstdCompress, createZstdDecompress } = zlib as Zstd;
  if (zstdCompress !== undefined && createZstdDecompress !== undefined)
    return { zstdCompress, createZstdDecompress };
  throw new ClusterError("machine-not-set-up", "This version of Node cannot read and write zstd.", {
    hint: "Use Node 22.15 or later, or Bun, or the command line.",
  });
}

/** Throws `machine-not-set-up` like `zstd`. */
export const createDecompressor = (): Duplex =>
  zstd().createZstdDecompress({ chunkSize: chunkBytes });

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
 * Reads and checks the manifest, but not the contents. Throws `bad-usage` if the file can't be read
 * or holds no cluster, and `snapshot-unusable` if it is damaged, encrypted, from a newer version or
 * for another backend.
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
    hint: `Pass a file that ${commandName("snapshot")} wrote, or a snapshot as CLUSTER:NAME.`,
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

async function readManifest(file: FileHandle, shown: string, backend: Manifest["backend"]) {
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
    `was not written by ${commandName("snapshot")}`,
    `Pass a file that ${commandName("snapshot")} saved.`,
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
  const manifest = sha256 === sha256OfJson(content) ? parseManifest(found) : undefined;
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
    sha256: sha256Rule.read,
  }),
);

const parseManifest: read.Reader<Manifest> = read.object({
  backend: read.oneOf("container", "vm"),
  createdBy: read.matching(/^[\w.+-]{1,64}$/),
  facts: read.anything,
  parts: parseClusterParts,
  sha256: read.string,
});

export type TakePart = (part: FilePart, chunks: AsyncIterable<Uint8Array>) => Promise<void>;

/**
 * Reads all parts, in order, and shows beside the step how much of them has been read. `take` must
 * read each part to its end; by then the part has been compared with the manifest. Throws
 * `snapshot-unusable` if
 * the file is damaged, incomplete, too long, or has been replaced since it was opened, and
 * `capacity-lacking` if `take` finds a disk full.
 */
export async function readParts(
  { path, shown, sha256, manifest }: ClusterFile,
  take: TakePart,
  step: Pick<Step, "update">,
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
    const total = bytesOf(manifest.parts);
    let done = 0;
    const counted = async function* (
      chunks: AsyncIterable<Uint8Array>,
    ): AsyncGenerator<Uint8Array> {
      for await (const chunk of chunks) {
        yield chunk;
        done += chunk.length;
        step.update(megabytesText(done, total));
      }
    };
    const takeAll = async (chunks: AsyncIterable<Uint8Array>): Promise<void> => {
      const source = byteSource(chunks);
      for (const part of manifest.parts) {
        const changed = (): ClusterError =>
          unusableFile(shown, `is damaged: ${part.name} has another checksum`);
        await take(part, counted(verified(part.sha256, source.stream(part.bytes), changed)));
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

export function diskFull(error: unknown, what: string): ClusterError | undefined {
  return isDiskFull(error)
    ? new ClusterError("capacity-lacking", `The disk is full: ${what} cannot be written.`, {
        hint: "Free some space.",
        cause: error,
      })
    : undefined;
}
