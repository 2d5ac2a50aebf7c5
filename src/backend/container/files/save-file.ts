import { stat } from "node:fs/promises";
import { ClusterError } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import type { ClusterName } from "../../../model/cluster-record.ts";
import { parsePlatform, parseVariant, parseWebUi } from "../../../model/parse-values.ts";
import type { SnapshotFile } from "../../../model/snapshot.ts";
import { outside } from "../../../outside-text.ts";
import type { Progress } from "../../../system/runtime.ts";
import { megabytesText } from "../../../system/amounts.ts";
import {
  type PartToWrite,
  assertWritable,
  writeClusterFile,
} from "../../shared/write-cluster-file.ts";
import type { CopiedNodes } from "../copies/copy-origin.ts";
import type { EngineFacts } from "../engine/engine-kind.ts";
import { type Engine, readEngineFacts } from "../engine/engine.ts";
import { snapshotImages } from "../records/labels.ts";
import { createdAt } from "../snapshots/read-snapshots.ts";
import { nodeRights } from "../snapshots/saved-nodes.ts";
import { readVolumeWords } from "../snapshots/saved-volumes.ts";
import { type ContainerFileFacts, layerPart, volumePart } from "./file-facts.ts";
import {
  type FoundImage,
  commonLayers,
  describeImages,
  inspectImages,
  layersIn,
  readIndex,
} from "./image-archive.ts";

interface FileSource {
  readonly cluster: ClusterName;
  readonly snapshot: string;
  readonly nodes: CopiedNodes;
  /** The folder of this backend's state. */
  readonly root: string;
  readonly progress: Progress;
}

/** Writes a snapshot to a file. The caller holds the lock of the machines. Throws the errors of `writeClusterFile`. */
export async function saveFile(
  engine: Engine,
  source: FileSource,
  { path, withoutBase, ...how }: SnapshotFile,
  signal: AbortSignal,
): Promise<void> {
  await assertWritable(path, how.replaces);
  const { nodes, cluster, progress } = source;
  noteMounts(source);
  using step = progress.start("Save the cluster as a file");
  const names = nodes.map(({ image }) => image);
  const [images, here] = await Promise.all([
    inspectImages(engine, names, signal),
    readEngineFacts(engine, signal),
  ]);
  const base = withoutBase ? await findBase(engine, images, signal) : undefined;
  const facts = factsOf({ source, images, base, here });
  const layers = new Set(
    images.flatMap((image) =>
      image.layers.filter((layer) => base?.layers.includes(layer) !== true),
    ),
  );
  const parts = partsOf(engine, { source, here, layers, left: base?.layers ?? [] }, signal);
  const onProgress = (bytes: number): void => step.update(megabytesText(bytes));
  const contents = {
    facts,
    parts,
    mostParts: layers.size + nodes.length,
    privateFolder: cluster.directory,
    onProgress,
  };
  await writeClusterFile({ path, ...how, backend: "container", ...contents }, signal);
  step.done(megabytesText((await stat(path)).size));
}

function noteMounts({ nodes: [{ settings }], progress }: FileSource): void {
  if (settings.customVolumes.length === 0) return;
  progress.note(
    `The file does not hold what nodes mount from outside: ${outside(settings.customVolumes.join(", "))}`,
  );
}

interface BaseImage {
  readonly name: string;
  readonly layers: readonly string[];
}

/** Finds the image of all nodes: the engine's image with most of their layers. Throws `image-not-found`. */
async function findBase(
  engine: Engine,
  images: readonly FoundImage[],
  signal: AbortSignal,
): Promise<BaseImage> {
  const bases = (await describeImages(engine, signal)).flatMap(
    ({ names, layers }): readonly BaseImage[] => {
      const name = names.find((each) => !each.startsWith(snapshotImages));
      return name !== undefined && images.every((image) => isBelow(layers, image))
        ? [{ name, layers }]
        : [];
    },
  );
  const [base] = bases.toSorted((one, other) => other.layers.length - one.layers.length);
  if (base !== undefined) return base;
  const { title } = engine.kind;
  throw new ClusterError(
    "image-not-found",
    `${title} no longer has the image of which the nodes were made.`,
    {
      hint: `Save the file with its image: leave out ${optionName("withoutBase")}.`,
    },
  );
}

const isBelow = (lower: readonly string[], image: FoundImage): boolean =>
  lower.length > 0 &&
  lower.length < image.layers.length &&
  commonLayers(image, lower) === lower.length;

interface Saving {
  readonly source: FileSource;
  readonly images: readonly FoundImage[];
  readonly base: BaseImage | undefined;
  readonly here: EngineFacts;
}

function factsOf({ source: { nodes, snapshot }, images, base, here }: Saving): ContainerFileFacts {
  const [{ clusterId, counts, labels }] = nodes;
  return {
    clusterId,
    snapshot,
    createdAt: (createdAt({ images: nodes }) ?? new Date(0)).toISOString(),
    variant: parseVariant(labels.variant) ?? "oss",
    distribution: labels.distribution ?? "unknown",
    counts,
    webUi: parseWebUi(labels.webUi),
    platform: parsePlatform(labels.platform),
    isOffline: labels.offline !== undefined,
    architecture: images[0]?.architecture ?? "",
    cgroupVersion: here.cgroupVersion,
    base: base?.name,
    nodes: nodes.map(({ role, index, platformAddress, settings: { limits } }, position) => {
      const { layers = [], volumes = [] } = images[position] ?? {};
      return { role, index, platformAddress, ...limits, layers, volumes };
    }),
  };
}

interface Parts extends Pick<Saving, "source" | "here"> {
  readonly layers: ReadonlySet<string>;
  /** Layers that are left out. */
  readonly left: readonly string[];
}

async function* partsOf(
  engine: Engine,
  { source: { nodes, root }, here, layers, left }: Parts,
  signal: AbortSignal,
): AsyncGenerator<PartToWrite, void, undefined> {
  const missing = new Set(layers);
  const save = [...engine.kind.saveWords, ...nodes.map(({ image }) => image)];
  // Only the end of the archive says which entry is which layer.
  const index =
    left.length === 0 ? undefined : await readIndex(engine.read(save, signal), async () => {});
  const nameOf = (sha256: string): string => {
    if (!missing.delete(sha256)) throw otherLayers(engine);
    return layerPart(sha256);
  };
  for await (const { name, contents } of layersIn(engine.read(save, signal)))
    if (!left.includes(index?.get(name) ?? "")) yield { nameOf, contents };
  if (missing.size > 0) throw otherLayers(engine);
  const withVolumes = nodes.filter(({ volume }) => volume !== undefined);
  if (withVolumes.length === 0) return;
  const { rights } = await nodeRights(engine, { image: nodes[0].image, root, facts: here }, signal);
  for (const node of withVolumes) {
    const { image, volume = "" } = node;
    yield {
      nameOf: () => volumePart(node),
      contents: engine.read(readVolumeWords({ rights, image, volume }), signal),
    };
  }
}

const otherLayers = ({ kind: { title } }: Engine): ClusterError =>
  new ClusterError("engine-failed", `${title} saved other layers than the images have.`, {
    hint: "Save the cluster again. If the images were changed meanwhile, make the snapshot again.",
  });
