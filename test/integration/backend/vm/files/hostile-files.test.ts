import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "bun:test";
import { generateKeyPair } from "../../../../../src/ssh/keys.ts";
import { type Facts, exampleClusterFile } from "../../../../support/example-cluster-file.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { packMemory, putTogether, sha256 } from "../../../../support/rewrite-cluster-file.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import {
  lack,
  testHere,
  megabyte,
  state,
  folder,
  good,
  image,
  loadFrom,
  load,
  left,
  withParts,
  disk,
  damaged,
} from "./example-files.ts";

const memory = packMemory(Buffer.from("memory"));

beforeAll(async () => {
  if (lack !== undefined) return;
  state.folder = await scratchFolder();
  state.good = await exampleClusterFile(folder());
});

afterAll(async () => state.folder?.[Symbol.asyncDispose]());

/** The file with other facts in its manifest. */
const withFacts = (facts: Facts): Buffer =>
  putTogether(
    { ...good().manifest, facts: { ...good().manifest.facts, ...facts } },
    good().contents.values(),
  );

const withFields = (fields: Facts): Buffer =>
  putTogether({ ...good().manifest, ...fields }, good().contents.values());

const withKeys = (changes: object): Buffer => {
  const keys = JSON.parse(good().contents.get("keys.json")!.toString()) as object;
  return withParts({ "keys.json": Buffer.from(JSON.stringify({ ...keys, ...changes })) });
};

/** The file whose manifest lies about a part. */
function withLie(
  name: string,
  lie: { readonly bytes?: number; readonly sha256?: string; readonly name?: string },
): Buffer {
  const parts = good().manifest.parts.map((part) =>
    part.name === name ? { ...part, ...lie } : part,
  );
  return withFields({ parts });
}

const patched = (at: number, bytes: readonly number[]): Buffer => {
  const changed = Buffer.from(good().contents.get(disk)!);
  changed.set(bytes, at);
  return changed;
};

const flipped = (bytes: Buffer, at: number): Buffer => {
  const changed = Buffer.from(bytes);
  changed[at < 0 ? bytes.length + at : at]! ^= 0x55;
  return changed;
};

const refusedFiles: readonly (readonly [string, string, RegExp, () => Buffer | Promise<Buffer>])[] =
  [
    ["an empty file", damaged, /was not written by/, () => Buffer.alloc(0)],
    [
      "a text",
      damaged,
      /was not written by/,
      () => Buffer.from("#!/bin/bash\necho hello, this is an artifact\n"),
    ],
    [
      "a tar archive by zstd",
      damaged,
      /was not written by/,
      () => Bun.zstdCompressSync(Buffer.alloc(10_240, "x")),
    ],
    [
      "another skippable frame",
      damaged,
      /was not written by/,
      () => putTogether({ format: "other" }, []),
    ],
    ["a manifest that isn't JSON", damaged, /was not written by/, () => flipped(good().bytes, 8)],
    ["a manifest of 4 GB", damaged, /was not written by/, () => flipped(good().bytes, 7)],
    [
      "a file that ends within its manifest",
      damaged,
      /is incomplete/,
      () => good().bytes.subarray(0, 300),
    ],
    [
      "a file that ends after its manifest",
      damaged,
      /is incomplete/,
      () => good().bytes.subarray(0, 8 + good().bytes.readUInt32LE(4)),
    ],
    [
      "a file that lacks its end",
      damaged,
      /is incomplete|has another checksum/,
      () => good().bytes.subarray(0, -20),
    ],
    [
      "a manifest with a flipped bit",
      damaged,
      /its manifest is not valid/,
      () => flipped(good().bytes, good().bytes.indexOf("installed")),
    ],
    [
      "contents with flipped bits",
      damaged,
      /is damaged|is incomplete/,
      () => flipped(flipped(good().bytes, -300), -60),
    ],
    ["a newer format", damaged, /newer version/, () => withFields({ formatVersion: 2 })],
    [
      "a file of containers",
      damaged,
      /is a cluster of cluster-container/,
      () => withFields({ backend: "container" }),
    ],
    [
      "a backend that there isn't",
      damaged,
      /its manifest is not valid/,
      () => withFields({ backend: "moon" }),
    ],
    [
      "an encrypted file",
      damaged,
      /is encrypted with age/,
      () => Buffer.from("age-encryption.org/v1\n-> X25519 abc\n"),
    ],
    [
      "machines of another processor",
      damaged,
      /holds machines for sparc/,
      () => withFacts({ architecture: "sparc" }),
    ],
    [
      "a name that leads out of the folder",
      damaged,
      /not those of its nodes|not valid/,
      () => withLie("master_0/memory", { name: "../outside" }),
    ],
    [
      "an absolute name",
      damaged,
      /its manifest is not valid/,
      () => withLie("master_0/memory", { name: "/tmp/outside" }),
    ],
    [
      "a name within a node that leads out",
      damaged,
      /not those of its nodes/,
      () => withLie("master_0/memory", { name: "master_0/.." }),
    ],
    [
      "a name of another node",
      damaged,
      /not those of its nodes/,
      () => withLie("master_0/memory", { name: "agent_0/memory" }),
    ],
    [
      "a part twice",
      damaged,
      /not those of its nodes/,
      () => withFields({ parts: [...good().manifest.parts, good().manifest.parts[3]] }),
    ],
    [
      "a block that is not in the node's memory",
      damaged,
      /master_0\/memory is no memory of such a node/,
      () =>
        withParts({
          "master_0/memory": Buffer.concat([Buffer.from([0, 2, 0, 0]), memory.subarray(4)]),
        }),
    ],
    [
      "a node without a state",
      damaged,
      /not those of its nodes/,
      () => withParts({ "master_0/state": undefined }),
    ],
    [
      "a node without a disk",
      damaged,
      /not those of its nodes/,
      () => withParts({ [disk]: undefined }),
    ],
    [
      "more nodes than parts",
      damaged,
      /not those of its nodes|not valid/,
      () => withFacts({ counts: { master: 1, agent: 999, public_agent: 0 } }),
    ],
    [
      "no nodes",
      damaged,
      /facts about the cluster are not valid/,
      () => withFacts({ counts: { master: 0, agent: 0, public_agent: 0 } }),
    ],
    [
      "a cluster id that is a path",
      damaged,
      /facts about the cluster are not valid/,
      () => withFacts({ clusterId: "../../etc" }),
    ],
    [
      "an instance id with a line break",
      damaged,
      /facts about the cluster are not valid/,
      () => withFacts({ instanceIds: ["a\nb"] }),
    ],
    [
      "layers in a circle",
      damaged,
      /facts about the cluster are not valid/,
      () =>
        withFacts({ layers: [{ format: "qcow2", bytes: 1, sha256: "0".repeat(64), below: 0 }] }),
    ],
    [
      "a size that is negative",
      damaged,
      /its manifest is not valid/,
      () => withLie("master_0/memory", { bytes: -1 }),
    ],
    [
      "a size that is too large",
      damaged,
      /is incomplete/,
      () => withLie("master_0/memory", { bytes: memory.length + 6 }),
    ],
    [
      "a size that is too small",
      damaged,
      /another checksum/,
      () => withLie("master_0/memory", { bytes: memory.length - 1 }),
    ],
    [
      "a size that no disk has",
      "capacity-lacking",
      /GB are required/,
      () => withLie("master_0/memory", { bytes: 2 ** 52 }),
    ],
    [
      "another checksum",
      damaged,
      /master_0\/memory has another checksum/,
      () => withLie("master_0/memory", { sha256: "0".repeat(64) }),
    ],
    [
      "an image with another checksum than the layer's",
      damaged,
      /not those of its nodes/,
      () => withLie("layer-0", { sha256: "0".repeat(64) }),
    ],
    [
      "more contents than parts",
      damaged,
      /longer than its manifest says/,
      () => putTogether(good().manifest, [...good().contents.values(), Buffer.alloc(100)]),
    ],
    [
      "a hundred megabytes of zeros for a few bytes",
      damaged,
      /longer than its manifest says/,
      () => putTogether(good().manifest, [...good().contents.values(), Buffer.alloc(1e8)]),
    ],
    [
      "keys that are none",
      damaged,
      /no usable keys/,
      () => withParts({ "keys.json": Buffer.from('{"privateKey":"x","hostKeys":["AAAA"]}') }),
    ],
    [
      "keys that aren't JSON",
      damaged,
      /no usable keys/,
      () => withParts({ "keys.json": Buffer.from("{") }),
    ],
    ["no host key for a node", damaged, /no usable keys/, () => withKeys({ hostKeys: [] })],
    [
      "a public key in place of the private one",
      damaged,
      /no usable keys/,
      () => withKeys({ privateKey: generateKeyPair("").publicKey }),
    ],
    [
      "keys of 2 MB",
      damaged,
      /keys are too long/,
      () => withParts({ "keys.json": Buffer.alloc(2 * megabyte) }),
    ],
    [
      "a disk that isn't qcow2",
      damaged,
      /is not a qcow2 disk/,
      () => withParts({ [disk]: Buffer.alloc(1000) }),
    ],
    [
      "a disk on a file of this computer",
      damaged,
      /layered on a file that it does not contain/,
      () => withFacts({ below: {} }),
    ],
    [
      "a disk that keeps its data elsewhere",
      damaged,
      /refers to another file/,
      async () =>
        withParts({
          [disk]: await image("-o", `data_file=${join(folder(), "data.raw")}`, "PATH", "1M"),
        }),
    ],
    [
      "an image on a file of this computer",
      damaged,
      /layered on a file that it does not contain/,
      () => {
        const bytes = good().contents.get(disk)!;
        return withParts(
          { "layer-0": bytes },
          { layers: [{ format: "qcow2", bytes: bytes.length, sha256: sha256(bytes) }] },
        );
      },
    ],
    [
      "an encrypted disk",
      damaged,
      /is encrypted/,
      () => withParts({ [disk]: patched(32, [0, 0, 0, 2]) }),
    ],
    [
      "a disk of a future format",
      damaged,
      /unknown version of qcow2/,
      () => withParts({ [disk]: patched(4, [0, 0, 0, 9]) }),
    ],
    [
      "a disk that QEMU refuses",
      damaged,
      /is not a disk that QEMU can use/,
      () => withParts({ [disk]: patched(20, [0xff, 0xff, 0xff, 0xff]) }),
    ],
    [
      "an image that is nowhere",
      "image-not-found",
      /lacks its image/,
      () => {
        const missing = { format: "raw", bytes: 10, sha256: "1".repeat(64) };
        return withParts({ "layer-0": undefined }, { layers: [missing] });
      },
    ],
    [
      "more memory than any computer has",
      "capacity-lacking",
      /need \d+ MB of memory/,
      () =>
        withFacts({
          machines: { accelerator: "tcg", isSandboxed: false, memoryMegabytes: 1e9, cpus: 1 },
        }),
    ],
  ];

// Shows R121.
testHere.each(refusedFiles)("%s is refused, and nothing is left", async (_, id, message, make) => {
  const path = join(folder(), "hostile.zst");
  await writeFile(path, await make());
  expect(await failureOf(load(path))).toMatchObject({
    id,
    message: expect.stringMatching(message),
  });
  expect(await left()).toEqual([]);
});

testHere("what isn't a regular file is refused at once", async () => {
  await Bun.$`mkfifo ${join(folder(), "pipe")}`;
  await symlink("nowhere", join(folder(), "dangling"));
  const paths = ["pipe", "dangling", "missing", "."].map((name) => join(folder(), name));
  for (const path of [...paths, "/dev/zero"])
    for (const sum of [undefined, "0".repeat(64)])
      expect(
        await failureOf(loadFrom({ location: { path, shown: path }, sha256: sum })),
      ).toMatchObject({
        id: "bad-usage",
      });
});
