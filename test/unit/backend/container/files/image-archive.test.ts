import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { layersIn, readIndex } from "../../../../../src/backend/container/files/image-archive.ts";
import { sha256 } from "../../../../support/rewrite-cluster-file.ts";
import { rawArchive } from "../../../../support/tar-blocks.ts";

const layers = ["lower", "upper"].map((contents) => rawArchive({ name: "file", contents }));
const empty = Buffer.alloc(1024);
const diffIds = [...layers, empty].map((layer) => `sha256:${sha256(layer)}`);
const configuration = JSON.stringify({
  architecture: "amd64",
  rootfs: { type: "layers", diff_ids: diffIds },
});

/** What engines write: each has names of its own, and some compress. */
const archives = {
  "Docker 20": {
    name: (sum: string) => `${sum}/layer.tar`,
    config: "c.json",
    pack: (layer: Buffer) => layer,
  },
  "Docker 29": {
    name: (sum: string) => `blobs/sha256/${sum}`,
    config: "blobs/sha256/c",
    pack: (layer: Buffer) => gzipSync(layer),
  },
  "Docker with zstd": {
    name: (sum: string) => `blobs/sha256/${sum}`,
    config: "blobs/sha256/c",
    pack: (layer: Buffer) => Bun.zstdCompressSync(layer),
  },
  "Podman 4": {
    name: (sum: string) => `${sum}.tar`,
    config: "c.json",
    pack: (layer: Buffer) => layer,
  },
};

test.each(Object.entries(archives))(
  "the layers that %s saves are found",
  async (_, { name, config, pack }) => {
    const packed = [...layers, empty].map((layer) => Buffer.from(pack(layer)));
    const names = packed.map((bytes) => name(sha256(bytes)));
    const archive = rawArchive(
      { name: "VERSION", contents: "1.0" },
      ...packed.map((contents, place) => ({ name: names[place]!, contents })),
      { name: "x/layer.tar", type: "2", linkTarget: names[0]! },
      { name: config, contents: configuration },
      {
        name: "manifest.json",
        contents: JSON.stringify([{ Config: config, RepoTags: null, Layers: names }]),
      },
    );
    const found: string[] = [];
    for await (const layer of layersIn(Readable.from([archive]))) {
      const bytes = Buffer.concat(await Array.fromAsync(layer.contents));
      found.push(`${layer.name} sha256:${sha256(bytes)}`);
    }
    expect(found).toEqual(names.map((each, place) => `${each} ${diffIds[place]}`));
    const taken: string[] = [];
    const index = await readIndex(Readable.from([archive]), async (entry) => {
      taken.push(entry.name);
      expect(await Array.fromAsync(entry.contents())).toHaveLength(1);
    });
    expect(taken).toEqual(names);
    expect([...index].map(([each, sum]) => `${each} sha256:${sum}`)).toEqual(found);
  },
);

test("what is compressed more than once is no layer, however deep it is, and the layers after it are found", async () => {
  const deep = Array.from({ length: 20 }).reduce<Buffer>(
    (inner) => gzipSync(inner),
    rawArchive({ name: "file", contents: "x" }),
  );
  const archive = rawArchive(
    { name: "twice", contents: gzipSync(Bun.zstdCompressSync(layers[0]!)) },
    { name: "deep", contents: deep },
    { name: "large", contents: gzipSync(gzipSync(randomBytes(1_000_000), { level: 0 })) },
    { name: "text", contents: gzipSync("{}") },
    { name: "layer", contents: gzipSync(layers[1]!) },
  );
  const found: string[] = [];
  const chunks = Readable.from(
    Array.from({ length: Math.ceil(archive.length / 4096) }, (_, at) =>
      archive.subarray(at * 4096, (at + 1) * 4096),
    ),
  );
  for await (const layer of layersIn(chunks)) {
    const bytes = Buffer.concat(await Array.fromAsync(layer.contents));
    found.push(`${layer.name} sha256:${sha256(bytes)}`);
  }
  expect(found).toEqual([`layer ${diffIds[1]}`]);
});
