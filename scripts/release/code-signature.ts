/**
 * Signatures inside macOS executables, as far as they are hashes of pages: whether they are right, and ad-hoc ones made anew.
 * Format: <kern/cs_blobs.h> of Apple's open sources. No keys are involved: an ad-hoc signature has none.
 */
import { createHash } from "node:crypto";
import { parseMachO } from "./mach-o.ts";

const superBlobMagic = 0xfade0cc0;
const codeDirectoryMagic = 0xfade0c02;
const cmsMagic = 0xfade0b01;
const sha256 = { type: 2, bytes: 32 } as const;
const pageBytes = 4096;
const identifier = "a.out\0";
const directoryVersion = 0x20400;
const directoryBytes = 88;
const adHocAndLinkerSigned = 0x20002;
const mainBinary = 1n;

/** What a Mac would find wrong with the file's signature: nothing, or sentences without a subject. Throws where it is no Mach-O file. */
export function signatureFaults(file: Buffer): readonly string[] {
  const { signature } = parseMachO(file);
  const directories = blobsOf(file).filter((blob) => blob.readUInt32BE(0) === codeDirectoryMagic);
  if (directories.length === 0) return ["has a signature without a code directory"];
  const faults = directories.flatMap((directory) =>
    directoryFaults(file, directory, signature.offset),
  );
  if (signature.offset + signature.size !== file.length)
    faults.push("has bytes after its signature");
  return faults;
}

/** Whether somebody signed it with a key, beyond the hashes: as Bun itself is, and nothing that is compiled with it can be. */
export function isSignedByKey(file: Buffer): boolean {
  return blobsOf(file).some((blob) => blob.readUInt32BE(0) === cmsMagic && blob.length > 8);
}

function blobsOf(file: Buffer): readonly Buffer[] {
  const { offset, size } = parseMachO(file).signature;
  const signature = file.subarray(offset, offset + size);
  if (signature.length < 12 || signature.readUInt32BE(0) !== superBlobMagic) return [];
  return Array.from({ length: signature.readUInt32BE(8) }, (_, index) => {
    const blob = signature.subarray(signature.readUInt32BE(12 + 8 * index + 4));
    return blob.subarray(0, blob.readUInt32BE(4));
  });
}

function directoryFaults(file: Buffer, directory: Buffer, signatureOffset: number): string[] {
  const [hashes, slots, limit] = [16, 28, 32].map((at) => directory.readUInt32BE(at)) as [
    number,
    number,
    number,
  ];
  const [hashBytes, hashType, pageShift] = [directory[36], directory[37], directory[39] ?? 0];
  if (hashBytes !== sha256.bytes || hashType !== sha256.type)
    return ["is signed with a hash other than SHA-256"];
  const faults =
    limit === signatureOffset ? [] : [`is signed only up to byte ${limit} of ${signatureOffset}`];
  const size = 2 ** pageShift;
  if (slots !== Math.ceil(limit / size))
    return [...faults, `has ${slots} page hashes for ${limit} bytes`];
  const isBad = (page: number): boolean => {
    const expected = directory.subarray(
      hashes + page * sha256.bytes,
      hashes + (page + 1) * sha256.bytes,
    );
    return !hashOf(file.subarray(page * size, Math.min((page + 1) * size, limit))).equals(expected);
  };
  const bad = Array.from({ length: slots }, (_, page) => page).filter(isBad);
  if (bad.length > 0)
    faults.push(`has ${bad.length} of ${slots} page hashes wrong, the first for page ${bad[0]}`);
  return faults;
}

const hashOf = (bytes: Buffer): Buffer => createHash("sha256").update(bytes).digest();

/** The file with an ad-hoc signature of all its pages in place of the one it had: what Bun itself writes for ARM. */
export function signedAdHoc(file: Buffer): Buffer {
  const { text, linkEdit, signature } = parseMachO(file);
  const limit = signature.offset;
  const slots = Math.ceil(limit / pageBytes);
  const blob = Buffer.alloc(20 + directoryBytes + identifier.length + slots * sha256.bytes);
  const signed = Buffer.concat([file.subarray(0, limit), blob]);
  const linkEditBytes = BigInt(signed.length - linkEdit.fileOffset);
  signed.writeUInt32LE(blob.length, signature.command + 12);
  signed.writeBigUInt64LE(linkEditBytes, linkEdit.command + 48);
  // Memory is given in pages of the largest size that a Mac has.
  signed.writeBigUInt64LE(((linkEditBytes + 0x3fffn) / 0x4000n) * 0x4000n, linkEdit.command + 32);

  const words = (at: number, ...values: readonly number[]): void =>
    values.forEach((value, index) => signed.writeUInt32BE(value, at + 4 * index));
  words(limit, superBlobMagic, blob.length, 1, 0, 20);
  const directory = limit + 20;
  const hashes = directoryBytes + identifier.length;
  words(directory, codeDirectoryMagic, blob.length - 20, directoryVersion, adHocAndLinkerSigned);
  words(directory + 16, hashes, directoryBytes, 0, slots, limit);
  signed.set([sha256.bytes, sha256.type, 0, Math.log2(pageBytes)], directory + 36);
  signed.writeBigUInt64BE(BigInt(text.fileOffset), directory + 64);
  signed.writeBigUInt64BE(BigInt(text.fileSize), directory + 72);
  signed.writeBigUInt64BE(mainBinary, directory + 80);
  signed.write(identifier, directory + directoryBytes, "latin1");
  for (let page = 0; page < slots; page += 1) {
    const bytes = signed.subarray(page * pageBytes, Math.min((page + 1) * pageBytes, limit));
    signed.set(hashOf(bytes), directory + hashes + page * sha256.bytes);
  }
  return signed;
}
