import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { TarFile } from "../../../../src/system/files/tar.ts";
import { tarStream } from "../../../../src/system/files/tar.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const file = (name: string, bytes: Uint8Array, mode = 0o644, modifiedMs = 1_600_000_000_999): TarFile => ({
  name,
  mode,
  modifiedMs,
  sizeBytes: bytes.length,
  contents: async function* () {
    for (let offset = 0; offset < bytes.length; offset += 1000) yield bytes.subarray(offset, offset + 1000);
  },
});

const archive = async (files: readonly TarFile[]): Promise<Uint8Array> =>
  Buffer.concat(await Array.fromAsync(tarStream(files)));

/** Bytes and choices that look random but are the same in each run. */
function* numbers(seed: number): Generator<number, never, undefined> {
  for (let state = seed; ;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state;
  }
}

const alphabet = ["a", "Z", "9", "_", "-", ".", " ", "'", '"', "\\", "$", "\n", "\t", "é", "木", "😀", "=", "*", "%"];

function randomFiles(seed: number): readonly TarFile[] {
  const random = numbers(seed);
  const next = (below: number): number => random.next().value % below;
  const word = (): string => Array.from({ length: 1 + next(12) }, () => alphabet[next(alphabet.length)]!).join("");
  const sizes = [0, 1, 511, 512, 513, 1024, 5000, 70_000];
  return Array.from({ length: 20 }, (_, index) => {
    const parts = Array.from({ length: 1 + next(15) }, () => `${word()}x`);
    const bytes = createHash("shake256", { outputLength: sizes[next(sizes.length)]! })
      .update(String(seed + index))
      .digest();
    return file(`d${index}/${parts.join("/")}`, bytes, next(2) === 0 ? 0o644 : 0o755, next(1_700_000_000) * 1000);
  });
}

test.each([1, 2, 3, 4, 5, 6])(
  "tar unpacks what was packed: names, modes, times and contents (seed %d)",
  async (seed) => {
    await using folder = await scratchFolder();
    const files = randomFiles(seed);
    await Bun.$`tar -x -f - -C ${folder.path} < ${await archive(files)}`;
    for (const { name, mode, modifiedMs, contents } of files) {
      const path = join(folder.path, name);
      const information = await stat(path);
      expect([name, information.mode & 0o777, Math.floor(information.mtimeMs)]).toEqual([name, mode, modifiedMs]);
      const expected = Buffer.concat(await Array.fromAsync(contents()));
      expect(expected.equals(await readFile(path))).toBe(true);
    }
  },
);

test.each([99, 100, 101, 155, 256, 300])("a name of %d bytes survives", async (length) => {
  await using folder = await scratchFolder();
  const name = `d/${"n".repeat(Math.min(length - 2, 250))}`.padEnd(length, "/n").replace(/\/$/, "m");
  const path = join(folder.path, "a.tar");
  await Bun.write(path, await archive([file(name, new Uint8Array([1]))]));
  expect(await Bun.$`tar -t -f ${path}`.text()).toBe(`${name}\n`);
});

test("the same files give the same bytes, of root", async () => {
  const files = [file("a", new Uint8Array([1, 2])), file("b/c", new Uint8Array())];
  await using folder = await scratchFolder();
  const path = join(folder.path, "a.tar");
  const bytes = await archive(files);
  await Bun.write(path, bytes);
  expect(bytes).toEqual(await archive(files));
  expect(bytes.length % 512).toBe(0);
  expect(await Bun.$`TZ=UTC tar -tv --numeric-owner -f ${path}`.text()).toMatchInlineSnapshot(`
    "-rw-r--r-- 0/0               2 2020-09-13 12:26 a
    -rw-r--r-- 0/0               0 2020-09-13 12:26 b/c
    "
  `);
});

test.skipIf(Bun.which("python3") === null)("Python's tarfile reads it too", async () => {
  await using folder = await scratchFolder();
  await mkdir(join(folder.path, "out"));
  await Bun.write(join(folder.path, "a.tar"), await archive(randomFiles(7)));
  const script = "import sys, tarfile, json; print(json.dumps([m.name for m in tarfile.open(sys.argv[1])]))";
  expect(JSON.parse(await Bun.$`python3 -c ${script} ${folder.path}/a.tar`.text())).toEqual(
    randomFiles(7).map(({ name }) => name),
  );
});

test.each([-1, 1])(
  "a file that has %d bytes more than announced ends the archive with an error",
  async (difference) => {
    const changed = { ...file("a.py", new Uint8Array(3000)), sizeBytes: 3000 - difference };
    expect(await archive([changed]).catch((error: unknown) => error)).toMatchObject({
      id: "transfer-failed",
      message: "a.py changed while it was being sent.",
      transient: true,
    });
  },
);
