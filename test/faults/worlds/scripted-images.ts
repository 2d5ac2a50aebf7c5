/** The images of a scripted engine: what makes them, describes them, and writes them to archives and back. */
import { createHash, randomBytes } from "node:crypto";
import { rawArchive } from "../../support/tar-blocks.ts";

type Labels = Readonly<Record<string, string>>;

export interface ScriptedImage {
  readonly id: string;
  readonly labels: Labels;
  /** Checksums, the lowest first. */
  readonly layers: readonly string[];
  /** What was put into the container that it was made of. */
  readonly files?: string;
}

const sumOf = (bytes: Uint8Array | string): string =>
  createHash("sha256").update(bytes).digest("hex");
/** A layer that is not compressed to less than half of this. */
const layerBytes = 300_000;
const newLayer = (): Buffer =>
  rawArchive({ name: "file", contents: randomBytes(layerBytes / 2).toString("hex") });

export class ScriptedImages {
  readonly #images = new Map<string, ScriptedImage>();
  readonly #layers = new Map<string, Buffer>();
  readonly #lowest = this.#keep(newLayer());

  get all(): readonly (ScriptedImage & { readonly name: string })[] {
    return [...this.#images].map(([name, image]) => ({ ...image, name }));
  }

  /** Makes an image of a container, whose changes are a layer of their own. */
  commit(name: string, labels: Labels, files: string): string {
    const layers = [this.#lowest, this.#keep(newLayer())];
    const id = randomBytes(32).toString("hex");
    this.#images.set(name, { id, labels, layers, files });
    return id;
  }

  tag(from: string, to: string): void {
    this.#images.set(to, this.#images.get(from)!);
  }

  remove(name: string): void {
    this.#images.delete(name);
  }

  /** By names and ids. */
  describe(words: readonly string[]): readonly unknown[] {
    const found = this.all.filter(({ name, id }) => words.includes(name) || words.includes(id));
    return found.map(({ name, id, labels, layers }) => ({
      Id: `sha256:${id}`,
      RepoTags: [name],
      Created: new Date().toISOString(),
      Architecture: "amd64",
      Config: { Labels: labels },
      RootFS: { Layers: layers.map((layer) => `sha256:${layer}`) },
    }));
  }

  /** The archive as Docker writes it. */
  save(words: readonly string[]): string {
    const images = this.all.filter(
      ({ name, id }) => words.includes(name) || words.includes(`sha256:${id}`),
    );
    const layers = [...new Set(images.flatMap((image) => image.layers))];
    const list = images.map((image) => ({
      Config: `${image.id}.json`,
      Layers: image.layers.map(entryOf),
    }));
    return rawArchive(
      ...layers.map((layer) => ({ name: entryOf(layer), contents: this.#layers.get(layer)! })),
      ...images.map((image) => ({ name: `${image.id}.json`, contents: configurationOf(image) })),
      { name: "manifest.json", contents: JSON.stringify(list) },
    ).toString("latin1");
  }

  /** Returns whether the archive is complete. If not, it changes nothing. */
  load(archive: Buffer): boolean {
    const entries = new Map<string, Buffer>();
    for (let at = 0; at + 512 <= archive.length && archive[at] !== 0;) {
      const name = archive.toString("latin1", at, archive.indexOf(0, at));
      const size = Number.parseInt(archive.toString("latin1", at + 124, at + 135), 8);
      entries.set(name, archive.subarray(at + 512, at + 512 + size));
      at += 512 + Math.ceil(size / 512) * 512;
    }
    const list = JSON.parse(
      entries.get("manifest.json")?.toString() ?? "[]",
    ) as readonly ListedImage[];
    for (const { Config, RepoTags, Layers } of list) {
      const text = entries.get(Config)!.toString();
      const layers = Layers.map((name) =>
        this.#keep(entries.get(name) ?? this.#layers.get(name.replace(".tar", ""))!),
      );
      const { config } = JSON.parse(text) as { readonly config: { readonly Labels: Labels } };
      for (const name of RepoTags)
        this.#images.set(name, { id: sumOf(text), labels: config.Labels, layers });
    }
    return list.length > 0;
  }

  #keep(layer: Buffer): string {
    const sum = sumOf(layer);
    this.#layers.set(sum, layer);
    return sum;
  }
}

interface ListedImage {
  readonly Config: string;
  readonly RepoTags: readonly string[];
  readonly Layers: readonly string[];
}

const entryOf = (layer: string): string => `${layer.slice(0, 32)}/layer.tar`;
const configurationOf = ({ layers }: ScriptedImage): string =>
  JSON.stringify({
    rootfs: { type: "layers", diff_ids: layers.map((layer) => `sha256:${layer}`) },
  });
