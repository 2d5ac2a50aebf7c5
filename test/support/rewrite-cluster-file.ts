/** Takes files with clusters apart, and writes them with other contents, as an attacker would: with sums that are right. */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";

export interface Manifest {
  readonly parts: readonly Part[];
  readonly facts: unknown;
  readonly sha256?: string;
}

interface Part {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface TakenApart {
  readonly manifest: Manifest;
  readonly contents: ReadonlyMap<string, Buffer>;
}

const headBytes = 8;
const magic = 0x18_4d_2a_5e;

export const sha256 = (bytes: Buffer | string): string =>
  createHash("sha256").update(bytes).digest("hex");

const blockBytes = 64 * 1024;

/** A machine's memory as it is in files: each block after its number. None of its blocks may be empty. */
export function packMemory(memory: Buffer): Buffer {
  const frames = Array.from({ length: Math.ceil(memory.length / blockBytes) }, (_, number) => {
    const frame = Buffer.alloc(4 + blockBytes);
    frame.writeUInt32LE(number);
    memory.copy(frame, 4, number * blockBytes, (number + 1) * blockBytes);
    return frame;
  });
  return Buffer.concat(frames);
}

export async function takeApart(path: string): Promise<TakenApart> {
  const file = await readFile(path);
  const end = headBytes + file.readUInt32LE(4);
  const { sha256: _, ...manifest } = JSON.parse(file.toString("utf8", headBytes, end)) as Manifest;
  const all = Buffer.from(Bun.zstdDecompressSync(file.subarray(end)));
  const contents = new Map<string, Buffer>();
  let at = 0;
  for (const { name, bytes } of manifest.parts) {
    contents.set(name, all.subarray(at, at + bytes));
    at += bytes;
  }
  return { manifest, contents };
}

/** The bytes of a file. The manifest's own sum is right, those of the parts are what the manifest says. */
export function putTogether(manifest: unknown, contents: Iterable<Buffer>): Buffer {
  const text = Buffer.from(
    JSON.stringify({ ...(manifest as object), sha256: sha256(JSON.stringify(manifest)) }),
  );
  const head = Buffer.alloc(headBytes);
  head.writeUInt32LE(magic);
  head.writeUInt32LE(text.length, 4);
  return Buffer.concat([head, text, Bun.zstdCompressSync(Buffer.concat([...contents]))]);
}

/** The manifest for parts with these contents. */
export const manifestFor = (
  manifest: Manifest,
  contents: ReadonlyMap<string, Buffer>,
): Manifest => ({
  ...manifest,
  parts: [...contents].map(([name, bytes]) => ({
    name,
    bytes: bytes.length,
    sha256: sha256(bytes),
  })),
});

/** Writes a file with other contents. */
export async function rewrite(
  from: string,
  to: string,
  change: (name: string, bytes: Buffer) => Buffer,
): Promise<void> {
  const { manifest, contents } = await takeApart(from);
  const changed = new Map([...contents].map(([name, bytes]) => [name, change(name, bytes)]));
  await writeFile(to, putTogether(manifestFor(manifest, changed), changed.values()));
}
