/** Clusters are written as files, among files of the user. */
import { expect, test } from "bun:test";
import { readFile, readdir, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type FileToWrite,
  assertSnapshot,
  knownParts,
  openClusterFile,
  readParts,
  writeClusterFile,
} from "../../../../src/backend/shared/cluster-file.ts";
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
  expect(await openClusterFile({ path, shown: path }, "vm")).toMatchObject({ manifest: { parts: [{ name: "part" }] } });
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
  expect(await failureOf(writeClusterFile({ ...file, onProgress }, neverAborted))).toMatchObject({ id: "bad-usage" });
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
  const file = { ...fileAt(scratch.path), encrypt, onProgress: (count: number) => void seen.push(count) };
  expect(await failureOf(writeClusterFile(file, neverAborted))).toMatchObject({ id: "machine-not-set-up" });
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
  await writeClusterFile({ ...fileAt(scratch.path), path: join(scratch.path, "plain") }, neverAborted);
  expect(await readFile(path)).toEqual(await readFile(join(scratch.path, "plain")));
});

test("a part of any size is read back as it was, after the manifest", async () => {
  await using scratch = await scratchFolder();
  // More than is read or written at once, also when it is compressed.
  const contents = Array.from({ length: 8 }, () => crypto.getRandomValues(new Uint8Array(60_000)).toHex()).join("");
  const file = { ...fileAt(scratch.path), parts: parts(contents) };
  await writeClusterFile(file, neverAborted);
  const chunks: Uint8Array[] = [];
  const take = async (_: unknown, given: AsyncIterable<Uint8Array>): Promise<void> => {
    for await (const chunk of given) chunks.push(chunk);
  };
  await readParts(await openClusterFile({ path: file.path, shown: file.path }, "vm"), take, neverAborted);
  expect(Buffer.concat(chunks).toString() === contents).toBe(true);
});

test("a snapshot that changed since it was made is not written", async () => {
  await using scratch = await scratchFolder();
  const changed = knownParts([{ name: "part", bytes: 8, sha256: "0".repeat(64), contents: () => bytes("contents") }]);
  const failure = await failureOf(writeClusterFile({ ...fileAt(scratch.path), parts: changed }, neverAborted));
  expect(failure).toMatchObject({ id: "snapshot-unusable", message: expect.stringContaining("part has changed") });
  expect(await readdir(scratch.path)).toEqual([]);
});

test("a file that is cut off, or another one than its checksum says, is unusable", async () => {
  await using scratch = await scratchFolder();
  const file = fileAt(scratch.path);
  await writeClusterFile(file, neverAborted);
  const read = async (sha256: string | undefined) => {
    const opened = await openClusterFile({ path: file.path, shown: "cluster.zst", sha256 }, "vm");
    await readParts(opened, async (_, chunks) => void (await Array.fromAsync(chunks)), neverAborted);
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
  expect(() => assertSnapshot("cluster.zst", { location, snapshot: "installed" }, "installed")).not.toThrow();
  expect(() => assertSnapshot("cluster.zst", { location, snapshot: "other" }, "installed")).toThrow(
    expect.objectContaining({ id }),
  );
});
