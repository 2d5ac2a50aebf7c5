/** Archives whose bytes follow from their contents alone. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { tarStream } from "../../src/system/files/tar.ts";

export interface Entry {
  /** In the archive. */
  readonly name: string;
  /** A file to take, or the text itself. */
  readonly from: { readonly path: string } | { readonly text: string };
  readonly mode: number;
}

/** The archive of the entries, each with the time given. */
async function tar(entries: readonly Entry[], modifiedMs: number): Promise<Readable> {
  const files = await Promise.all(
    entries.map(async ({ name, from, mode }) => {
      const sizeBytes =
        "path" in from ? (await stat(from.path)).size : Buffer.byteLength(from.text);
      const contents = (): AsyncIterable<Uint8Array> =>
        "path" in from ? createReadStream(from.path) : new Blob([from.text]).stream();
      return { name, mode, modifiedMs, sizeBytes, contents };
    }),
  );
  return Readable.from(tarStream(files));
}

/**
 * Writes a .tar.xz. Its dictionary holds two executables, so that what they share is stored once; unpacking takes 256 MB. The
 * preset matters less: 6 takes almost five times as long as 1, and makes it 8 % smaller.
 */
export async function writeTarXz(
  target: string,
  entries: readonly Entry[],
  modifiedMs: number,
): Promise<void> {
  const argv = ["xz", "--stdout", "--threads=1", "--lzma2=preset=1,dict=256MiB"];
  const child = Bun.spawn(argv, {
    stdin: "pipe",
    stdout: Bun.file(target),
    stderr: "inherit",
  });
  for await (const chunk of await tar(entries, modifiedMs)) {
    await child.stdin.write(chunk as Uint8Array);
    await child.stdin.flush();
  }
  await child.stdin.end();
  if ((await child.exited) !== 0) throw new Error(`xz cannot write ${target}`);
}

/** Writes a .tar.gz: what every system unpacks. */
export async function writeTarGz(
  target: string,
  entries: readonly Entry[],
  modifiedMs: number,
): Promise<void> {
  const chunks = (await Array.fromAsync(await tar(entries, modifiedMs))) as Uint8Array[];
  await Bun.write(target, gzipSync(Buffer.concat(chunks), { level: 9 }));
}
