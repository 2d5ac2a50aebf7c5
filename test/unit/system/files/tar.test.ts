import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { TarFile } from "../../../../src/system/files/tar.ts";
import { tarStream, textFile } from "../../../../src/system/files/tar.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const file = (
  name: string,
  bytes: Uint8Array,
  mode = 0o644,
  modifiedMs = 1_600_000_000_999,
): TarFile => ({
  name,
  mode,
  modifiedMs,
  sizeBytes: bytes.length,
  contents: async function* () {
    for (let offset = 0; offset < bytes.length; offset += 1000)
      yield bytes.subarray(offset, offset + 1000);
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

const alphabet = [
  "a",
  "Z",
  "9",
  "_",
  "-",
  ".",
  " ",
  "'",
  '"',
  "\\",
  "$",
  "\n",
  "\t",
  "é",
  "木",
  "😀",
  "=",
  "*",
  "%",
];

function randomFiles(seed: number): readonly TarFile[] {
  const random = numbers(seed);
  const next = (below: number): number => random.next().value % below;
  const word = (): string =>
    Array.from({ length: 1 + next(12) }, () => alphabet[next(alphabet.length)]!).join("");
  const sizes = [0, 1, 511, 512, 513, 1024, 5000, 70_000];
  return Array.from({ length: 20 }, (_, index) => {
    const parts = Array.from({ length: 1 + next(15) }, () => `${word()}x`);
    const bytes = createHash("shake256", { outputLength: sizes[next(sizes.length)]! })
      .update(String(seed + index))
      .digest();
    return file(
      `d${index}/${parts.join("/")}`,
      bytes,
      next(2) === 0 ? 0o644 : 0o755,
      next(1_700_000_000) * 1000,
    );
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
      expect([name, information.mode & 0o777, Math.floor(information.mtimeMs)]).toEqual([
        name,
        mode,
        modifiedMs,
      ]);
      const expected = Buffer.concat(await Array.fromAsync(contents()));
      expect(expected.equals(await readFile(path))).toBe(true);
    }
  },
);

test.each([99, 100, 101, 155, 256, 300])("a name of %d bytes survives", async (length) => {
  await using folder = await scratchFolder();
  const name = `d/${"n".repeat(Math.min(length - 2, 250))}`
    .padEnd(length, "/n")
    .replace(/\/$/, "m");
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

test("every field of a header is as POSIX has it", async () => {
  const block = Buffer.from(
    (await archive([file("a", new Uint8Array(9), 0o755, 1_600_000_000_000)])).subarray(0, 512),
  );
  const sum = block.reduce(
    (total, byte, index) => total + (index >= 148 && index < 156 ? 0x20 : byte),
    0,
  );
  const fields = [
    ["name", 0, 100, "a".padEnd(100, "\0")],
    ["mode", 100, 8, "0000755\0"],
    ["uid", 108, 8, "0000000\0"],
    ["gid", 116, 8, "0000000\0"],
    ["size", 124, 12, "00000000011\0"],
    ["mtime", 136, 12, "13727410000\0"],
    ["chksum", 148, 8, `${sum.toString(8).padStart(6, "0")}\0 `],
    ["typeflag", 156, 1, "0"],
    ["linkname", 157, 100, "\0".repeat(100)],
    ["magic and version", 257, 8, "ustar\u000000"],
    ["uname", 265, 32, "root".padEnd(32, "\0")],
    ["gname", 297, 32, "root".padEnd(32, "\0")],
  ] as const;
  expect(
    fields.map(([name, start, length]) => [name, block.toString("latin1", start, start + length)]),
  ).toEqual(fields.map(([name, , , text]) => [name, text]));
});

test("an extended header, and a time before 1970, have fields that every program reads", async () => {
  const bytes = Buffer.from(await archive([file("木", new Uint8Array(), 0o600, -1_500)]));
  const field = (block: number, start: number, end: number): string =>
    bytes.toString("latin1", 512 * block + start, 512 * block + end);
  expect([field(0, 156, 157), field(0, 100, 107), field(0, 136, 147)]).toEqual([
    "x",
    "0000644",
    "00000000000",
  ]);
  expect([field(2, 156, 157), field(2, 100, 107), field(2, 136, 147)]).toEqual([
    "0",
    "0000600",
    "00000000000",
  ]);
});

test("the contents of a text are in the archive", async () => {
  const text = textFile({ name: "a", mode: 0o644, modifiedMs: 0, text: "größe" });
  expect(Buffer.from(await archive([text])).toString("utf8", 512, 512 + text.sizeBytes)).toBe(
    "größe",
  );
});

test.each([
  ["a plain name and a time of whole seconds", "n".repeat(100), 1_600_000_000_000, 0],
  ["a time before 1970", "a", -1_500, 0],
  ["a name that is too long", "n".repeat(101), 1_600_000_000_000, 1024],
  ["a name in another script", "木", 1_600_000_000_000, 1024],
  ["a time with milliseconds", "a", 1_600_000_000_123, 1024],
])(
  "%s: extended headers only where they are needed",
  async (_, name, modifiedMs, extendedBytes) => {
    // A header, a block of contents, and two blocks that end the archive.
    expect(await archive([file(name, new Uint8Array(1), 0o644, modifiedMs)])).toHaveLength(
      extendedBytes + 4 * 512,
    );
  },
);

test("times are kept to the millisecond, and a folder is a folder", async () => {
  await using folder = await scratchFolder();
  const files = [
    file("empty/", new Uint8Array(), 0o750, 1_600_000_000_000),
    file("a", new Uint8Array(1), 0o644, 1_600_000_000_123),
  ];
  const bytes = await archive(files);
  expect(String.fromCharCode(bytes[156]!)).toBe("5");
  await Bun.$`tar -x -f - -C ${folder.path} < ${bytes}`;
  expect(Math.round((await stat(join(folder.path, "a"))).mtimeMs)).toBe(1_600_000_000_123);
  expect((await stat(join(folder.path, "empty"))).mode).toBe(0o040_750);
});

test.each([
  [8_589_934_591, "77777777777"],
  // More than the field holds: an extended header has the size.
  [8_589_934_592, "00000000000"],
])("a file may have %d bytes", async (sizeBytes, shown) => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "a.tar");
  const { value } = await tarStream([{ ...file("a", new Uint8Array()), sizeBytes }]).next();
  expect(Buffer.from(value!).subarray(-512).toString("latin1", 124, 136)).toBe(`${shown}\0`);
  await Bun.write(path, value!);
  // The contents are missing, but tar lists the entry first.
  expect(await Bun.$`tar -tv -f ${path}`.nothrow().quiet().text()).toContain(` ${sizeBytes} `);
});

test.skipIf(Bun.which("python3") === null)("Python's tarfile reads it too", async () => {
  await using folder = await scratchFolder();
  await mkdir(join(folder.path, "out"));
  await Bun.write(join(folder.path, "a.tar"), await archive(randomFiles(7)));
  const script =
    "import sys, tarfile, json; print(json.dumps([m.name for m in tarfile.open(sys.argv[1])]))";
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

test("of a file that never ends, no more is sent than was announced", async () => {
  const read = { chunks: 0 };
  const contents = async function* (): AsyncGenerator<Uint8Array> {
    for (; read.chunks < 100; read.chunks += 1) yield new Uint8Array(1000);
  };
  const stream = tarStream([{ ...file("a", new Uint8Array(3000)), contents }]);
  expect(await Array.fromAsync(stream).catch((error: unknown) => error)).toMatchObject({
    id: "transfer-failed",
  });
  expect(read.chunks).toBe(3);
});
