import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { ArchiveProblem, IncompleteArchive } from "../../../../src/system/files/tar.ts";
import { readTar, unpackTar } from "../../../../src/system/files/read-tar.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import {
  endOfArchive,
  paxRecord,
  rawArchive,
  rawEntry,
  type RawEntry,
} from "../../../support/tar-blocks.ts";

const { signal } = new AbortController();
const limits = { entries: 20, totalBytes: 10_000 };
const folder: RawEntry = { name: "./", type: "5", mode: 0o755 };
const link = (name: string, linkTarget: string): RawEntry => ({ name, type: "2", linkTarget });
const pax = (...records: readonly (readonly [string, string])[]): RawEntry => ({
  name: "pax",
  type: "x",
  contents: records.map(([key, value]) => paxRecord(key, value)).join(""),
});

/** In chunks of a size that divides nothing. */
async function* chunked(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  for (let start = 0; start < bytes.length; start += 333) yield bytes.subarray(start, start + 333);
}

/** Unpacks in a folder of its own, and fails if anything appears there beside the target. */
async function problemOf(bytes: Uint8Array): Promise<Error> {
  await using scratch = await scratchFolder();
  const failure = await failureOf(
    unpackTar(chunked(bytes), join(scratch.path, "target"), limits, signal),
  );
  expect((await readdir(scratch.path)).filter((name) => name !== "target")).toEqual([]);
  return failure;
}

test("what tar packs arrives: names, contents, permissions and links", async () => {
  await using scratch = await scratchFolder();
  const source = join(scratch.path, "source");
  const long = `${"d".repeat(90)}/${"e".repeat(200)}.txt`;
  for (const [name, text] of [
    ["größe 木.txt", "1"],
    [long, "2"],
    ["sub/empty", ""],
    ["sub/big", "x".repeat(5000)],
  ]) {
    await Bun.write(join(source, name!), text!);
  }
  await Bun.$`cd ${source} && chmod 4755 sub/big && chmod 400 sub/empty && ln -s ../${long} sub/link && ln -s sub dir && ln sub/big hard && ln -s nowhere broken`;
  const bytes =
    await Bun.$`tar -c --format=posix --hard-dereference -f - -C ${source} .`.arrayBuffer();
  const target = join(scratch.path, "target");
  expect(
    await unpackTar(
      chunked(new Uint8Array(bytes)),
      target,
      { ...limits, totalBytes: 20_000 },
      signal,
    ),
  ).toEqual({
    files: 5,
    bytes: 10_002,
  });
  expect(await Bun.$`diff -r --no-dereference ${source} ${target}`.text()).toBe("");
  expect((await lstat(join(target, "sub/big"))).mode & 0o7777).toBe(0o755);
  expect((await lstat(join(target, "sub/empty"))).mode & 0o7777).toBe(0o600);
  expect(await readlink(join(target, "sub/link"))).toBe(`../${long}`);
});

test("an archive at the limits is unpacked, and each entry has its own name and size", async () => {
  await using scratch = await scratchFolder();
  const longName = "n".repeat(255);
  const longTarget = `${"n/".repeat(2047)}x`;
  const levels = Array.from({ length: 200 }, (_, index) => [
    pax(["path", `./${"a/".repeat(index + 1)}`]),
    { name: "x", type: "5", mode: 0o755 },
  ]).flat();
  const bytes = rawArchive(
    pax(["path", "./"]),
    pax(["path", "./"], ["comment", "x".repeat(65_510)]),
    pax(["path", "./"]),
    // A header for the whole archive names no entry.
    { name: "pax", type: "g", contents: paxRecord("path", "../x") },
    folder,
    // Only files have contents, whatever the header says.
    { name: "./closed/", type: "5", mode: 0o500, claimedSize: 512 },
    pax(["path", `./closed/${longName}`]),
    { name: "x", contents: "text" },
    { ...link("./link", "closed"), claimedSize: 512 },
    pax(["linkpath", longTarget]),
    link("./long", ""),
    ...levels,
  );
  const target = join(scratch.path, "target");
  const exactly = { entries: 205, totalBytes: 4 };
  expect(await unpackTar(chunked(bytes), target, exactly, signal)).toEqual({ files: 1, bytes: 4 });
  expect((await readdir(target)).toSorted()).toEqual(["a", "closed", "link", "long"]);
  expect(await readFile(join(target, "closed", longName), "utf8")).toBe("text");
  expect((await lstat(join(target, "closed"))).mode & 0o777).toBe(0o700);
  expect(await readlink(join(target, "long"))).toBe(longTarget);
});

test("a single file arrives under the target's name, whatever the archive calls it", async () => {
  await using scratch = await scratchFolder();
  const target = join(scratch.path, "target");
  await unpackTar(
    chunked(rawArchive({ name: "../../etc/passwd", contents: "text" })),
    target,
    limits,
    signal,
  );
  expect(await readdir(scratch.path)).toEqual(["target"]);
  expect(await readFile(target, "utf8")).toBe("text");
});

test.each([
  ["a path upwards", [folder, { name: "./../x" }], '"./../x" is not a plain name'],
  ["a path upwards in the middle", [folder, { name: "./a/../../x" }], "is not a plain name"],
  ["an absolute path", [folder, { name: "/x" }], "is not a plain name"],
  ["an absolute path after the dot", [folder, { name: ".//x" }], "is not a plain name"],
  [
    "a path upwards in a pax record",
    [folder, pax(["path", "../x"]), { name: "x" }],
    "is not a plain name",
  ],
  ["a NUL in a pax record", [folder, pax(["path", "x\0y"]), { name: "x" }], "is not a plain name"],
  ["a control character", [folder, { name: "./a\u001b[2J" }], "is not a plain name"],
  ["a line break", [folder, { name: "./a\nb" }], "is not a plain name"],
  ["reversed text", [folder, { name: "./a\u202eb" }], "is not a plain name"],
  [
    "a name that is too long",
    [folder, pax(["path", `./${"n".repeat(256)}`]), { name: "x" }],
    "is not a plain name",
  ],
  [
    "a long name above another",
    [folder, pax(["path", `./${"n".repeat(256)}/a`]), { name: "x" }],
    "is not a plain name",
  ],
  ["the folder again", [folder, folder], "is not a plain name"],
  ["a name twice", [folder, { name: "./a" }, { name: "a" }], '"a" occurs twice'],
  ["a file in a missing folder", [folder, { name: "./a/b" }], "is in no folder"],
  ["a file inside a file", [folder, { name: "./a" }, { name: "./a/b" }], "is in no folder"],
  ["a file behind a link", [folder, link("./a", "."), { name: "./a/b" }], "is in no folder"],
  ["a second file", [{ name: "a" }, { name: "b" }], "is in no folder"],
  ["a link instead of the file", [link("a", "/etc/passwd")], 'it begins with "a"'],
  ["a folder of another name", [{ name: "x/", type: "5" }], 'it begins with "x/"'],
  [
    "an absolute link",
    [folder, link("./a", "/etc/passwd")],
    'leads out of the folder, to "/etc/passwd"',
  ],
  ["a link upwards", [folder, link("./a", "../x")], "leads out of the folder"],
  [
    "a link through another",
    [folder, link("./a", "b/../.."), link("./b", ".")],
    "leads out of the folder",
  ],
  ["a link in circles", [folder, link("./a", "b"), link("./b", "a")], "leads out of the folder"],
  ["a link to nothing", [folder, link("./a", "")], "is not a plain path"],
  [
    "a long name in a link",
    [folder, pax(["linkpath", "n".repeat(256)]), link("./a", "")],
    "is not a plain path",
  ],
  [
    "a link to a path that is too long",
    [folder, pax(["linkpath", `${"n/".repeat(2047)}xy`]), link("./a", "")],
    "is not a plain path",
  ],
  ["a link to a control character", [folder, link("./a", "\u001b[2J")], "is not a plain path"],
  [
    "a hard link",
    [folder, { name: "./a", type: "1", linkTarget: "/etc/passwd" }],
    "neither a file, a folder nor a link",
  ],
  [
    "a character device",
    [folder, { name: "./a", type: "3" }],
    "neither a file, a folder nor a link",
  ],
  ["a block device", [folder, { name: "./a", type: "4" }], "neither a file, a folder nor a link"],
  ["a FIFO", [folder, { name: "./a", type: "6" }], "neither a file, a folder nor a link"],
  [
    "too many files",
    [folder, ...Array.from({ length: 20 }, (_, n) => ({ name: `./${n}` }))],
    "more than 20 files",
  ],
  [
    "too many bytes",
    [folder, { name: "./a", contents: "x".repeat(10_001) }],
    "more than 10000 bytes",
  ],
  [
    "a claim of too many bytes",
    [folder, { name: "./a", claimedSize: 0o77777777777 }],
    "more than 10000 bytes",
  ],
  [
    "a pax claim of too many bytes",
    [folder, pax(["size", "999999999999999"]), { name: "a" }],
    "more than 10000 bytes",
  ],
  ["a negative size", [folder, pax(["size", "-1"]), { name: "a" }], "damaged"],
  ["large metadata", [{ ...pax(["comment", "x".repeat(65_536)]) }, folder], "damaged"],
  ["much metadata", [...Array.from({ length: 5 }, () => pax(["path", "./"])), folder], "damaged"],
  [
    "a pax record beyond its header",
    [{ name: "pax", type: "x", contents: "99 path=x\n" }, folder],
    "damaged",
  ],
  [
    "a pax record without a length",
    [{ name: "pax", type: "x", contents: "path=x\n" }, folder],
    "damaged",
  ],
  [
    "a pax record of no length",
    [{ name: "pax", type: "x", contents: "0 path=x\n" }, folder],
    "damaged",
  ],
  ["nothing", [], "the archive is empty"],
] satisfies [string, RawEntry[], string][])(
  "an archive with %s is rejected",
  async (_name, entries, reason) => {
    const failure = await problemOf(rawArchive(...entries));
    expect(failure).toBeInstanceOf(ArchiveProblem);
    expect(unmarked(failure.message)).toContain(reason);
  },
);

test("bytes that are no archive, names that are not UTF-8 and endless padding are rejected", async () => {
  const latin1 = rawEntry({ name: "x" });
  const broken = rawArchive(folder);
  broken[0] = 0x41;
  for (const [bytes, reason] of [
    [Buffer.alloc(2048, "no archive "), "damaged"],
    [broken, "damaged"],
    [Buffer.concat([rawArchive(folder), Buffer.alloc(1024 * 1024 + 1)]), "damaged"],
    [Buffer.concat([withName(latin1, Buffer.from([0x2e, 0x2f, 0xff])), endOfArchive]), "UTF-8"],
  ] satisfies [Buffer, string][]) {
    const failure = await problemOf(bytes);
    expect(failure).toBeInstanceOf(ArchiveProblem);
    expect(failure.message).toContain(reason);
  }
});

/** Replaces the name in a header, with the sum that belongs to it. */
function withName(entry: Buffer, name: Uint8Array): Buffer {
  const changed = Buffer.from(entry);
  changed.fill(0, 0, 100);
  changed.set(name, 0);
  changed.fill(" ", 148, 156);
  const sum = changed.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  changed.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return changed;
}

test("an archive that ends anywhere is incomplete", async () => {
  const whole = rawArchive(folder, { name: "./a", contents: "x".repeat(700) });
  for (const length of [0, 1, 511, 512, 513, 1024, 1500, 1724, 2047, 2048]) {
    expect(await problemOf(whole.subarray(0, length))).toBeInstanceOf(IncompleteArchive);
  }
});

test("an archive with too many levels of folders, or too much text in links, is rejected", async () => {
  const levels = (count: number): RawEntry[] =>
    Array.from({ length: count }, (_, index) => [
      pax(["path", `./${"a/".repeat(index + 1)}`]),
      { name: "x", type: "5", mode: 0o755 },
    ]).flat();
  const links = Array.from({ length: 1100 }, (_, index) => [
    pax(["linkpath", `${"n/".repeat(2000)}x`]),
    link(`./l${index}`, "x"),
  ]).flat();
  for (const [entries, reason] of [
    [levels(201), "is not a plain name"],
    [links, "too many symbolic links"],
  ] as const) {
    await using scratch = await scratchFolder();
    const many = { entries: 2000, totalBytes: 0 };
    const bytes = rawArchive(folder, ...entries);
    const failure = await failureOf(
      unpackTar(chunked(bytes), join(scratch.path, "target"), many, signal),
    );
    expect(failure).toBeInstanceOf(ArchiveProblem);
    expect(failure.message).toContain(reason);
  }
});

test("names that would fill the memory are rejected", async () => {
  const entry = rawArchive(pax(["linkpath", "n".repeat(65_000)]), link("a", "")).subarray(
    0,
    -endOfArchive.length,
  );
  const endless = function* (): Generator<Uint8Array> {
    for (let count = 0; count < 1000; count += 1) yield entry;
  };
  const reading = Array.fromAsync(
    readTar(Readable.from(endless()), { entries: 1000, totalBytes: 0 }),
  );
  expect((await failureOf(reading)).message).toContain("the names in it are too long");
});

test("whoever reads only a part of an archive ends its source, such as a program", async () => {
  const state = { isOpen: true };
  async function* source(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) yield rawArchive({ name: "a", contents: "text" }).subarray(0, -endOfArchive.length);
    } finally {
      state.isOpen = false;
    }
  }
  for await (const { contents } of readTar(source(), limits)) {
    for await (const _ of contents) break;
    break;
  }
  expect(state.isOpen).toBe(false);
});

test("an abort ends the unpacking between two entries, and between two links", async () => {
  for (const entries of [[{ name: "./a" }, { name: "./b" }], [link("./a", "b")]]) {
    await using scratch = await scratchFolder();
    const controller = new AbortController();
    async function* interrupted(): AsyncGenerator<Uint8Array, void, undefined> {
      yield rawArchive(folder, ...entries);
      controller.abort(new Error("interrupted"));
    }
    const target = join(scratch.path, "target");
    const many = { entries: 2000, totalBytes: 0 };
    const abortedFirst = entries.length > 1;
    if (abortedFirst) controller.abort(new Error("interrupted"));
    const failure = await failureOf(unpackTar(interrupted(), target, many, controller.signal));
    expect(failure.message).toBe("interrupted");
    expect(abortedFirst || (await readdir(target)).length === 0).toBe(true);
  }
});
