/** Clusters are written as files, among files of the user. */
import { expect, test } from "bun:test";
import { mkdir, open, readFile, readdir, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  assertSnapshot,
  openClusterFile,
  readParts,
} from "../../../../src/backend/shared/cluster-file.ts";
import {
  type FileToWrite,
  assertWritable,
  knownParts,
  writeClusterFile,
} from "../../../../src/backend/shared/write-cluster-file.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

async function* bytes(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield Buffer.from(text);
}

async function* parts(text: string): FileToWrite["parts"] & AsyncGenerator {
  yield { nameOf: () => "part", contents: bytes(text) };
}

const silentStep = { update: () => {} };

const fileAt = (folder: string): FileToWrite => ({
  path: join(folder, "cluster.zst"),
  replaces: false,
  encrypt: undefined,
  backend: "vm",
  facts: {},
  parts: parts("contents"),
  mostParts: 1,
  privateFolder: folder,
  onProgress: () => {},
});

test("only the file itself is written, whatever is beside it", async () => {
  await using scratch = await scratchFolder();
  await writeFile(join(scratch.path, "cluster.zst.part"), "the user's");
  await writeClusterFile(fileAt(scratch.path), neverAborted);
  expect((await readdir(scratch.path)).toSorted()).toEqual(["cluster.zst", "cluster.zst.part"]);
  expect(await readFile(join(scratch.path, "cluster.zst.part"), "utf8")).toBe("the user's");
  const path = join(scratch.path, "cluster.zst");
  expect(await openClusterFile({ path, shown: path }, "vm")).toMatchObject({
    manifest: { parts: [{ name: "part" }] },
  });
  // It holds the cluster's keys.
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  // Other commands recognize it by this.
  const written = await readFile(path);
  expect(written.readUInt32LE()).toBe(0x18_4d_2a_5e);
  expect(written.toString("latin1", 8, 40)).toStartWith('{"format":"cluster-e2e-cluster",');
});

test("a file that appears at the path meanwhile is kept", async () => {
  await using scratch = await scratchFolder();
  const file = fileAt(scratch.path);
  const onProgress = (): void => void Bun.spawnSync(["sh", "-c", 'echo mine >"$0"', file.path]);
  expect(await failureOf(writeClusterFile({ ...file, onProgress }, neverAborted))).toMatchObject({
    id: "bad-usage",
  });
  expect(await readdir(scratch.path)).toEqual(["cluster.zst"]);
  expect(await readFile(file.path, "utf8")).toBe("mine\n");
});

test.each(["failure", "interrupt"])("nothing is left after a %s", async (end) => {
  await using scratch = await scratchFolder();
  const interrupted = new AbortController();
  const onProgress = (): void => {
    if (end === "failure") throw new Error("broken");
    interrupted.abort(new Error("interrupted"));
  };
  const writing = writeClusterFile({ ...fileAt(scratch.path), onProgress }, interrupted.signal);
  const { id, message } = await failureOf(writing);
  expect(end === "failure" ? id : message).toBe(end === "failure" ? "bad-usage" : "interrupted");
  expect(await readdir(scratch.path)).toEqual([]);
});

test("an encryption that does not work is found out before the snapshot is read", async () => {
  await using scratch = await scratchFolder();
  const seen: number[] = [];
  const encrypt = async (): Promise<never> => {
    throw new ClusterError("machine-not-set-up", "There is no age.");
  };
  const file = {
    ...fileAt(scratch.path),
    encrypt,
    onProgress: (count: number) => void seen.push(count),
  };
  expect(await failureOf(writeClusterFile(file, neverAborted))).toMatchObject({
    id: "machine-not-set-up",
  });
  expect(seen).toEqual([]);
  expect(await readdir(scratch.path)).toEqual([]);
});

test("an encrypted file holds what the file would hold without encryption", async () => {
  await using scratch = await scratchFolder();
  const encrypt: NonNullable<FileToWrite["encrypt"]> = async (stream, path) =>
    writeFile(path, Buffer.concat([Buffer.from("sealed:"), ...(await Array.fromAsync(stream))]));
  const file = { ...fileAt(scratch.path), encrypt };
  await writeClusterFile(file, neverAborted);
  expect(await readdir(scratch.path)).toEqual(["cluster.zst"]);
  const [sealed, path] = [await readFile(file.path), join(scratch.path, "decrypted")];
  expect(sealed.toString("latin1")).toStartWith("sealed:");
  await writeFile(path, sealed.subarray("sealed:".length));
  await writeClusterFile(
    { ...fileAt(scratch.path), path: join(scratch.path, "plain") },
    neverAborted,
  );
  expect(await readFile(path)).toEqual(await readFile(join(scratch.path, "plain")));
});

test("a part of any size is read back as it was, after the manifest", async () => {
  await using scratch = await scratchFolder();
  // More than is compressed, read or written at once.
  const contents = Array.from({ length: 200 }, () =>
    crypto.getRandomValues(new Uint8Array(60_000)).toHex(),
  ).join("");
  const file = { ...fileAt(scratch.path), parts: parts(contents) };
  await writeClusterFile(file, neverAborted);
  const chunks: Uint8Array[] = [];
  const take = async (_: unknown, given: AsyncIterable<Uint8Array>): Promise<void> => {
    for await (const chunk of given) chunks.push(chunk);
  };
  await readParts(
    await openClusterFile({ path: file.path, shown: file.path }, "vm"),
    take,
    silentStep,
    neverAborted,
  );
  expect(Buffer.concat(chunks).toString() === contents).toBe(true);
});

test("a snapshot that changed since it was made is not written", async () => {
  await using scratch = await scratchFolder();
  const changed = knownParts([
    { name: "part", bytes: 8, sha256: "0".repeat(64), contents: () => bytes("contents") },
  ]);
  const failure = await failureOf(
    writeClusterFile({ ...fileAt(scratch.path), parts: changed }, neverAborted),
  );
  expect(failure).toMatchObject({
    id: "snapshot-unusable",
    message: expect.stringContaining("part has changed"),
  });
  expect(await readdir(scratch.path)).toEqual([]);
});

const sumOf = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");

test("parts keep their names, and the manifest has the length and the checksum of each", async () => {
  await using scratch = await scratchFolder();
  const [first, second] = ["contents", "more of them"].map((text, index) => ({
    // The longest that there may be: the manifest has room for them.
    name: `${"n".repeat(64)}/${"m".repeat(63)}${index}`,
    bytes: text.length,
    sha256: sumOf(text),
    contents: () => bytes(text),
  }));
  const read: number[] = [];
  const file = {
    ...fileAt(scratch.path),
    mostParts: 2,
    onProgress: (count: number) => void read.push(count),
  };
  await writeClusterFile({ ...file, parts: knownParts([first!, second!]) }, neverAborted);
  const opened = await openClusterFile({ path: file.path, shown: "cluster.zst" }, "vm");
  await readParts(
    opened,
    async (_, chunks) => void (await Array.fromAsync(chunks)),
    silentStep,
    neverAborted,
  );
  expect(opened.manifest.parts).toEqual([first!, second!].map(({ contents: _, ...part }) => part));
  expect(read).toEqual([8, 20]);
});

test("a file is written only where none is, or over one that may be replaced", async () => {
  await using scratch = await scratchFolder();
  const path = join(scratch.path, "cluster.zst");
  await assertWritable(path, false);
  await writeFile(path, "");
  await assertWritable(path, true);
  const [existing, folder] = [await failureOf(assertWritable(path, false)), scratch.path];
  expect(existing).toMatchObject({ id: "bad-usage", message: `${path} exists already.` });
  const failure = await failureOf(assertWritable(folder, true));
  expect([failure.id, failure.message]).toEqual([
    "bad-usage",
    expect.stringContaining("it is not a regular file"),
  ]);
  // Its parent is no folder.
  expect((await failureOf(assertWritable(join(path, "below"), false))).id).toBe("bad-usage");
});

const noSpace = Object.assign(new Error("write failed"), { code: "ENOSPC" });
const noQuota = Object.assign(new Error("write failed"), { code: "EDQUOT" });

test.each([
  ["full", noSpace],
  ["full for this user", noQuota],
])("a disk that is %s is named", async (_, error) => {
  await using scratch = await scratchFolder();
  const file = fileAt(scratch.path);
  const onProgress = (): never => {
    throw error;
  };
  const writing = writeClusterFile({ ...file, onProgress }, neverAborted);
  expect(await failureOf(writing)).toMatchObject({
    id: "capacity-lacking",
    message: `The disk is full: ${file.path} cannot be written.`,
  });
  const sealed = { ...file, parts: parts("contents"), encrypt: async () => {}, onProgress };
  const encrypted = writeClusterFile(sealed, neverAborted);
  expect((await failureOf(encrypted)).message).toBe(
    `The disk is full: the unencrypted copy in ${file.privateFolder} cannot be written.`,
  );
  await writeClusterFile({ ...file, parts: parts("contents") }, neverAborted);
  const opened = await openClusterFile({ path: file.path, shown: "cluster.zst" }, "vm");
  const reading = readParts(opened, async () => Promise.reject(error), silentStep, neverAborted);
  expect((await failureOf(reading)).message).toBe(
    "The disk is full: the cluster's files cannot be written.",
  );
});

/** Changes a file after it was opened, and returns what is said about it then. */
async function readChanged(change: (path: string) => Promise<unknown>): Promise<string> {
  await using scratch = await scratchFolder();
  const file = fileAt(scratch.path);
  await writeClusterFile(file, neverAborted);
  const opened = await openClusterFile({ path: file.path, shown: "cluster.zst" }, "vm");
  await change(file.path);
  const take = async (_: unknown, chunks: AsyncIterable<Uint8Array>) =>
    void (await Array.fromAsync(chunks));
  return (await failureOf(readParts(opened, take, silentStep, neverAborted))).message;
}

/** Writes a file of other contents there. */
async function replace(path: string, text: string): Promise<void> {
  await writeClusterFile(
    { ...fileAt(""), path, privateFolder: "", replaces: true, parts: parts(text) },
    neverAborted,
  );
}

/** Overwrites bytes behind the manifest. */
async function overwriteContents(path: string): Promise<void> {
  const contentsAt = 8 + (await readFile(path)).readUInt32LE(4);
  await using file = await open(path, "r+");
  await file.write(Buffer.alloc(4), 0, 4, contentsAt);
}

/** Puts the contents of another file behind the manifest. */
async function swapContents(path: string, text: string): Promise<void> {
  const own = await readFile(path);
  await replace(path, text);
  const other = await readFile(path);
  const contentsOf = (file: Buffer) => 8 + file.readUInt32LE(4);
  await writeFile(
    path,
    Buffer.concat([own.subarray(0, contentsOf(own)), other.subarray(contentsOf(other))]),
  );
}

test.each<[string, (path: string) => Promise<unknown>, string]>([
  ["replaced", async (path) => replace(path, "others"), "was replaced meanwhile"],
  ["a folder", async (path) => rm(path).then(async () => mkdir(path)), "it is not a regular file"],
  ["gone", async (path) => rm(path), "the file does not exist"],
  ["overwritten", overwriteContents, "is damaged: it cannot be decompressed"],
  [
    "another file's behind its manifest",
    async (path) => swapContents(path, "CONTENTS"),
    "part has another checksum",
  ],
  ["shorter than it says", async (path) => swapContents(path, "content"), "is incomplete"],
  [
    "longer than it says",
    async (path) => swapContents(path, "contents."),
    "it is longer than its manifest says",
  ],
])("a file that is %s when it is read is not used", async (_, change, why) => {
  expect(await readChanged(change)).toContain(why);
});

test("an interrupt while a file is read is no damage", async () => {
  await using scratch = await scratchFolder();
  const file = fileAt(scratch.path);
  await writeClusterFile(file, neverAborted);
  const opened = await openClusterFile({ path: file.path, shown: "cluster.zst" }, "vm");
  const [interrupt, reason] = [new AbortController(), new Error("interrupted")];
  const take = async (): Promise<never> => {
    interrupt.abort(reason);
    throw noSpace;
  };
  expect((await failureOf(readParts(opened, take, silentStep, interrupt.signal))) as Error).toBe(
    reason,
  );
});

test("a file that is cut off, or another one than its checksum says, is unusable", async () => {
  await using scratch = await scratchFolder();
  const file = fileAt(scratch.path);
  await writeClusterFile(file, neverAborted);
  const read = async (sha256: string | undefined) => {
    const opened = await openClusterFile({ path: file.path, shown: "cluster.zst", sha256 }, "vm");
    await readParts(
      opened,
      async (_, chunks) => void (await Array.fromAsync(chunks)),
      silentStep,
      neverAborted,
    );
  };
  const sum = new Bun.CryptoHasher("sha256").update(await readFile(file.path)).digest("hex");
  await read(sum);
  expect(await failureOf(read("0".repeat(64)))).toMatchObject({
    id: "snapshot-unusable",
    message: "cluster.zst was replaced meanwhile.",
  });
  await truncate(file.path, (await stat(file.path)).size - 9);
  expect(await failureOf(read(undefined))).toMatchObject({
    id: "snapshot-unusable",
    message: "cluster.zst is incomplete.",
  });
});

test("a reference may name the snapshot in the file", () => {
  const location = { path: "/cluster.zst", shown: "cluster.zst" };
  const id = "snapshot-unusable";
  expect(() => assertSnapshot("cluster.zst", { location }, "installed")).not.toThrow();
  expect(() =>
    assertSnapshot("cluster.zst", { location, snapshot: "installed" }, "installed"),
  ).not.toThrow();
  expect(() => assertSnapshot("cluster.zst", { location, snapshot: "other" }, "installed")).toThrow(
    expect.objectContaining({ id }),
  );
});
