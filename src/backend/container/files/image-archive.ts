/**
 * The archives of images that engines save and load: tars with layers, a configuration for each
 * image, and `manifest.json`, which names them
 * (https://github.com/moby/moby/blob/v28.0.0/image/spec/README.md). This reads what an engine
 * saves, and writes what it loads.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type Duplex, PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { ClusterError } from "../../../errors.ts";
import * as read from "../../../model/reader.ts";
import { readTar } from "../../../system/files/read-tar.ts";
import {
  type TarFile,
  archiveEnd,
  blockBytes,
  tarEntry,
  textFile,
} from "../../../system/files/tar.ts";
import { parseJson } from "../../../system/files/read-text.ts";
import { createDecompressor } from "../../shared/cluster-file.ts";
import { type Engine, askJson } from "../engine/engine.ts";
import { type LabelValues, labelNames } from "../records/labels.ts";
import { describeEach } from "../records/read-containers.ts";

/** The engine's own archives are as large as its images. */
const limits = { entries: 1_000_000, totalBytes: Number.MAX_SAFE_INTEGER };
const loadLimitMs = 60 * 60_000;
const mostDescriptionBytes = 4 * 1024 * 1024;

/** Yields the layers in an engine's archive, each once: its entry's name, and its contents uncompressed. */
export async function* layersIn(archive: AsyncIterable<Uint8Array>) {
  for await (const { kind, name, contents } of readTar(archive, limits)) {
    if (kind !== "file") continue;
    const layer = await layerOf(contents);
    if (layer !== undefined) yield { name, contents: layer };
  }
}

/**
 * Undefined for an entry that isn't an archive, such as a configuration. Layers are compressed once
 * at most; what is compressed again isn't unpacked, because there are files that unpack to
 * themselves (https://research.swtch.com/zip).
 */
async function layerOf(
  contents: AsyncIterable<Uint8Array>,
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const packed = await peek(contents);
  const decompressor = decompressorOf(packed.head);
  const { head, all } =
    decompressor === undefined ? packed : await peek(through(packed.all, decompressor));
  const isEmpty = head.length === blockBytes && head.every((byte) => byte === 0);
  return isEmpty || head.toString("latin1", 257, 262) === "ustar" ? all : undefined;
}

/** Undefined if a file that begins like this isn't compressed. */
function decompressorOf(head: Buffer): Duplex | undefined {
  if (head.readUInt16BE(0) === 0x1f_8b) return createGunzip();
  return head.readUInt32LE(0) === 0xfd_2f_b5_28 ? createDecompressor() : undefined;
}

/** Returns the first bytes, and everything, which includes them. */
async function peek(contents: AsyncIterable<Uint8Array>) {
  const iterator = contents[Symbol.asyncIterator]();
  const taken: Uint8Array[] = [];
  for (let bytes = 0; bytes < blockBytes;) {
    const next = await iterator.next();
    if (next.done === true) break;
    taken.push(next.value);
    bytes += next.value.length;
  }
  const head = Buffer.alloc(blockBytes, 0x20);
  Buffer.concat(taken).copy(head);
  const all = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    yield* taken;
    yield* { [Symbol.asyncIterator]: () => iterator };
  };
  return { head, all: all() };
}

async function* through(
  chunks: AsyncIterable<Uint8Array>,
  transform: Duplex,
): AsyncGenerator<Uint8Array> {
  const piped = pipeline(Readable.from(chunks), transform);
  piped.catch(() => {});
  yield* transform as AsyncIterable<Uint8Array>;
  await piped;
}

const parseIndex = read.list(read.object({ Config: read.string, Layers: read.list(read.string) }));
const parseConfiguration = read.field(
  "rootfs",
  read.field("diff_ids", read.list(read.matching(/^sha256:[0-9a-f]{64}$/))),
);

/**
 * Reads an engine's archive. Resolves with the layers' checksums by entry name. `take` gets each
 * entry that may be a layer.
 */
export async function readIndex(
  archive: AsyncIterable<Uint8Array>,
  take: (entry: Pick<TarFile, "name" | "sizeBytes" | "contents">) => Promise<void>,
) {
  const texts = new Map<string, string>();
  for await (const { kind, name, sizeBytes, contents } of readTar(archive, limits)) {
    if (kind !== "file") continue;
    const isShort = sizeBytes <= mostDescriptionBytes;
    const bytes = isShort ? await buffer(contents) : undefined;
    if (bytes !== undefined && /^[{[]/.test(bytes.toString("latin1", 0, 1)))
      texts.set(name, bytes.toString("utf8"));
    else if (/\.tar$|^blobs\//.test(name))
      await take({
        name,
        sizeBytes,
        contents: () => (bytes === undefined ? contents : Readable.from([bytes])),
      });
  }
  const described = (parseIndex(parseJson(texts.get("manifest.json") ?? "")) ?? []).map(
    ({ Config, Layers }) => ({
      sums: parseConfiguration(parseJson(texts.get(Config) ?? "")) ?? [],
      names: Layers,
    }),
  );
  return new Map(
    described.flatMap(({ sums, names }) =>
      names.flatMap((name, position) => {
        const sum = sums[position];
        return sum === undefined ? [] : [[name, withoutAlgorithm(sum)] as const];
      }),
    ),
  );
}

const withoutAlgorithm = (sum: string): string => sum.replace("sha256:", "");

interface ImageToLoad {
  readonly name: string;
  readonly labels: LabelValues;
  readonly volumes: readonly string[];
  /** Checksums. */
  readonly layers: readonly string[];
}

/**
 * Loads images into an engine. They consist of the added layers and of nothing else from outside.
 * The engine reads layers as they are added, and creates the images only at the end, when it gets
 * their list. Disposing of the loader earlier leaves nothing behind.
 */
export class ImageLoader implements AsyncDisposable {
  readonly #engine: Engine;
  readonly #archive = new PassThrough();
  readonly #loaded: Promise<unknown>;
  /** The names of the layers' entries, by their checksums. */
  readonly #entries = new Map<string, string>();

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#archive.on("error", () => {});
    this.#loaded = engine.change({
      words: ["load", "--quiet"],
      stdin: this.#archive,
      limitMs: loadLimitMs,
    });
    this.#loaded.catch(() => {});
  }

  async addLayer(sha256: string, layer: Pick<TarFile, "sizeBytes" | "contents">): Promise<void> {
    const name = entryOf(sha256);
    await this.#add({ name, ...layer });
    this.#entries.set(sha256, name);
  }

  /** Adds the layers of an image that the engine has. */
  async addLayersOf(image: string, signal: AbortSignal): Promise<void> {
    const { kind } = this.#engine;
    const archive = this.#engine.read([...kind.saveWords, image], signal);
    const index = await readIndex(archive, async (entry) => this.#add(entry));
    for (const [name, sha256] of index) this.#entries.set(sha256, name);
  }

  /** Throws `engine-failed` unless the engine has loaded exactly these images. */
  async finish(
    images: readonly ImageToLoad[],
    { architecture, createdAt }: { readonly architecture: string; readonly createdAt: string },
    signal: AbortSignal,
  ): Promise<void> {
    const list = [];
    for (const { name, labels, volumes, layers } of images) {
      const configuration = {
        architecture,
        os: "linux",
        created: createdAt,
        config: {
          Labels: Object.fromEntries(
            Object.entries(labels).map(([key, value]) => [
              labelNames[key as keyof LabelValues],
              value,
            ]),
          ),
          Volumes: Object.fromEntries(volumes.map((path) => [path, {}])),
        },
        rootfs: { type: "layers", diff_ids: layers.map((layer) => `sha256:${layer}`) },
        // Podman makes an image of a container only if there is an entry for each layer.
        history: layers.map(() => ({ created: createdAt, created_by: "cluster-e2e" })),
      };
      const text = JSON.stringify(configuration);
      const Config = `${createHash("sha256").update(text).digest("hex")}.json`;
      await this.#addText(Config, text);
      list.push({
        Config,
        RepoTags: [name],
        Layers: layers.map((layer) => this.#entries.get(layer) ?? entryOf(layer)),
      });
    }
    await this.#addText("manifest.json", JSON.stringify(list));
    await this.#write(archiveEnd);
    this.#archive.end();
    await this.#loaded;
    await this.#assertLoaded(images, signal);
  }

  async #assertLoaded(images: readonly ImageToLoad[], signal: AbortSignal): Promise<void> {
    const names = images.map(({ name }) => name);
    const found = await inspectImages(this.#engine, names, signal);
    for (const [position, { name, layers }] of images.entries()) {
      if (found[position]?.layers.join(" ") === layers.join(" ")) continue;
      const { title } = this.#engine.kind;
      throw new ClusterError(
        "engine-failed",
        `${title} has not loaded the image ${name} as it is in the file.`,
        {
          hint: `Check whether this version of ${title} is supported: cluster-container doctor`,
        },
      );
    }
  }

  async #addText(name: string, text: string): Promise<void> {
    await this.#add(textFile({ name, mode: 0o644, modifiedMs: 0, text }));
  }

  async #add(file: Pick<TarFile, "name" | "sizeBytes" | "contents">): Promise<void> {
    for await (const chunk of tarEntry({ ...file, mode: 0o644, modifiedMs: 0 }))
      await this.#write(chunk);
  }

  /** If the engine ends, its failure is thrown. */
  async #write(chunk: Uint8Array): Promise<void> {
    if (this.#archive.write(chunk)) return;
    await Promise.race([once(this.#archive, "drain"), this.#loaded]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#archive.destroy();
    await this.#loaded.catch(() => {});
  }
}

const entryOf = (sha256: string): string => `${sha256}.tar`;

export interface FoundImage {
  readonly id: string;
  readonly names: readonly string[];
  readonly architecture: string;
  readonly layers: readonly string[];
  readonly volumes: readonly string[];
}

/** Undefined for something else, such as an image for another system. */
const readFoundImage: read.Reader<FoundImage> = read.refined(
  read.object({
    Id: read.matching(/^(?:sha256:)?[0-9a-f]{64}$/),
    RepoTags: read.lenient(read.list(read.string)),
    Architecture: read.string,
    RootFS: read.object({ Layers: read.list(read.matching(/^sha256:[0-9a-f]{64}$/)) }),
    Config: read.object({ Volumes: read.lenient(read.anyMapping) }),
  }),
  ({ Id: id, RepoTags: names = [], Architecture: architecture, RootFS, Config }) => ({
    id,
    names,
    architecture,
    layers: RootFS.Layers.map(withoutAlgorithm),
    volumes: Object.keys(Config.Volumes ?? {}),
  }),
);

/** All images of the engine. */
export async function describeImages(
  engine: Engine,
  signal: AbortSignal,
): Promise<readonly FoundImage[]> {
  const words = ["images", "--quiet", "--no-trunc"];
  const described = await describeEach(engine, { words, kind: "image" }, signal);
  return described.flatMap((found) => readFoundImage(found) ?? []);
}

/** How many of these layers the image begins with. */
export function commonLayers(
  { layers: own }: Pick<FoundImage, "layers">,
  layers: readonly string[],
): number {
  const differs = layers.findIndex((layer, position) => own[position] !== layer);
  return differs === -1 ? layers.length : differs;
}

export async function inspectImages(
  engine: Engine,
  names: readonly string[],
  signal: AbortSignal,
): Promise<readonly FoundImage[]> {
  const found = await askJson(engine, { words: ["image", "inspect", ...names] }, signal);
  return read.list(readFoundImage)(found) ?? [];
}
