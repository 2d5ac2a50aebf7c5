import {
  type ClusterName,
  type Counts,
  byRoleAndIndex,
  nodeCount,
  nodeReference,
} from "../../../model/cluster-record.ts";
import {
  parseCounts,
  parseIpv4,
  parseMoment,
  parseSnapshotName,
} from "../../../model/parse-values.ts";
import * as read from "../../../model/reader.ts";
import type { NodeName } from "../../contract.ts";
import { ClusterError } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { findMissingSources } from "../launch/find-missing-sources.ts";
import { notWhole, snapshotNotFound } from "../../shared/machine-errors.ts";
import { textParsers } from "../../shared/foreign-resource.ts";
import type { Engine } from "../engine/engine.ts";
import {
  type CreationName,
  type LabelValues,
  type NodeSettings,
  draftImage,
  parseNodeSettings,
  readLabels,
  snapshotImage,
  snapshotVolume,
} from "../records/labels.ts";
import {
  type Selection,
  describeEach,
  filterWord,
  labelsOf,
  parseNetworkAddress,
} from "../records/read-containers.ts";

/** Everything that the engine has of one snapshot. */
export interface SavedSnapshot extends CreationName {
  readonly name: string;
  readonly images: readonly SavedImage[];
  readonly volumes: readonly SavedVolume[];
  /** Absent unless every node is there with everything that belongs to it. */
  readonly nodes: readonly SavedNode[] | undefined;
}

interface Part extends CreationName, NodeName {
  readonly snapshot: string;
}

interface SavedImage extends Part {
  /** The full name of the finished image; absent for one that is still a draft. */
  readonly image: string | undefined;
  /** All full names that the image has as a part of the snapshot. */
  readonly names: readonly string[];
  readonly createdAt: Date | undefined;
  readonly counts: Counts | undefined;
  readonly address: string | undefined;
  /** The address that the platform knows, such as `172.18.0.2/16`; undefined if an earlier version saved the node. */
  readonly platformAddress: string | undefined;
  readonly settings: NodeSettings | undefined;
  readonly volumeKilobytes: number;
  readonly labels: LabelValues;
}

interface SavedVolume extends Part {
  readonly volume: string;
}

/** A node that can be restored. */
export interface SavedNode extends SavedImage {
  readonly image: string;
  readonly address: string;
  readonly counts: Counts;
  readonly settings: NodeSettings;
  /** Absent if its volumes were empty. */
  readonly volume: string | undefined;
}

/** Finds snapshots by the labels and names of their images and volumes, oldest first. */
export async function readSnapshots(
  engine: Engine,
  selection: Selection,
  signal: AbortSignal,
): Promise<readonly SavedSnapshot[]> {
  // Podman would also list what matches only one of two filters of labels.
  const filters = [filterWord(selection)];
  const [images, volumes] = await Promise.all([
    describeEach(
      engine,
      { words: ["images", "--quiet", "--no-trunc", ...filters], kind: "image" },
      signal,
    ),
    describeEach(
      engine,
      { words: ["volume", "ls", "--quiet", ...filters], kind: "volume" },
      signal,
    ),
  ]);
  return toSnapshots(images, volumes);
}

export interface SnapshotName {
  readonly cluster: ClusterName;
  readonly name: string;
}

/** Finds a snapshot, complete or not. Throws `snapshot-not-found`. */
export async function findSnapshot(
  engine: Engine,
  { cluster, name }: SnapshotName,
  signal: AbortSignal,
): Promise<SavedSnapshot> {
  const snapshots = await readSnapshots(engine, { creationId: cluster.creationId }, signal);
  const found = snapshots.find((snapshot) => snapshot.name === name);
  if (found !== undefined) return found;
  throw snapshotNotFound(
    cluster,
    name,
    snapshots.map((snapshot) => snapshot.name),
  );
}

/** Finds all nodes of a snapshot. Throws `snapshot-not-found`, and `snapshot-unusable` if something is missing. */
export async function findSavedNodes(
  engine: Engine,
  { cluster, name }: SnapshotName,
  signal: AbortSignal,
): Promise<readonly [SavedNode, ...SavedNode[]]> {
  const [first, ...others] = (await findSnapshot(engine, { cluster, name }, signal)).nodes ?? [];
  if (first === undefined) throw notWhole(cluster, name);
  return [first, ...others];
}

/** Finds all nodes of a snapshot whose files and folders from outside are there. Throws like `findSavedNodes`. */
export async function findRestorableNodes(
  engine: Engine,
  { cluster, name }: SnapshotName,
  signal: AbortSignal,
): Promise<readonly [SavedNode, ...SavedNode[]]> {
  const nodes = await findSavedNodes(engine, { cluster, name }, signal);
  const [{ image }] = nodes;
  const customVolumes = nodes.flatMap(({ settings }) => settings.customVolumes);
  const [missing] = await findMissingSources(engine, { image, customVolumes }, signal);
  if (missing === undefined) return nodes;
  throw new ClusterError(
    "snapshot-unusable",
    `The snapshot "${name}" of cluster "${cluster.id}" needs ${outside(missing)}, which does not exist on the computer that ${engine.kind.title} runs on.`,
    {
      hint: "Its nodes mount it: create it there.",
      facts: { cluster: cluster.id, snapshot: name },
    },
  );
}

/** Reads the engine's descriptions. An image or volume whose name doesn't match its labels isn't ours. */
export function toSnapshots(
  images: readonly unknown[],
  volumes: readonly unknown[],
): readonly SavedSnapshot[] {
  const ownImages = images.map(readImage).filter((image) => image !== undefined);
  const ownVolumes = volumes.map(readVolume).filter((volume) => volume !== undefined);
  const key = ({ creationId, snapshot }: Part): string => `${creationId}-${snapshot}`;
  const parts = new Map([...ownVolumes, ...ownImages].map((part) => [key(part), part]));
  const [imagesOf, volumesOf] = [Map.groupBy(ownImages, key), Map.groupBy(ownVolumes, key)];
  const snapshots = [...parts].map(([own, { clusterId, creationId, snapshot: name }]) => {
    const mine = { images: imagesOf.get(own) ?? [], volumes: volumesOf.get(own) ?? [] };
    return { clusterId, creationId, name, ...mine, nodes: completeNodes(mine) };
  });
  return snapshots.toSorted((a, b) => createdMs(a) - createdMs(b) || a.name.localeCompare(b.name));
}

/** Returns when its last image was created; undefined if there is none. */
export function createdAt({ images }: Pick<SavedSnapshot, "images">): Date | undefined {
  const times = images
    .map((image) => image.createdAt?.getTime())
    .filter((time) => time !== undefined);
  return times.length === 0 ? undefined : new Date(Math.max(...times));
}

const createdMs = (snapshot: SavedSnapshot): number => createdAt(snapshot)?.getTime() ?? 0;

function completeNodes({
  images,
  volumes,
}: Pick<SavedSnapshot, "images" | "volumes">): SavedSnapshot["nodes"] {
  const counts = images[0]?.counts;
  if (counts === undefined || images.length !== nodeCount(counts)) return undefined;
  const volumeOf = new Map(volumes.map((each) => [nodeReference(each), each.volume]));
  const nodes = images.toSorted(byRoleAndIndex).map((image): SavedNode | undefined => {
    const { image: name, address, settings, volumeKilobytes } = image;
    const volume = volumeOf.get(nodeReference(image));
    if (name === undefined || address === undefined || settings === undefined) return undefined;
    return volume === undefined && volumeKilobytes > 0
      ? undefined
      : { ...image, image: name, address, counts, settings, volume };
  });
  const complete = nodes.filter((node) => node !== undefined);
  return complete.length === nodes.length ? complete : undefined;
}

function readImage(found: unknown): SavedImage | undefined {
  if (!read.isMapping(found)) return undefined;
  const labels = readLabels(labelsOf(found));
  const part = readPart(labels);
  const tags = read.list(read.anything)(found["RepoTags"]) ?? [];
  if (part === undefined) return undefined;
  const image = snapshotImage(part.creationId, part.snapshot, part);
  const names = [image, draftImage(part.creationId, part.snapshot, part)].filter((name) =>
    tags.includes(name),
  );
  if (names.length === 0) return undefined;
  const kilobytes = Number(labels.volumeSize);
  return {
    ...part,
    image: names.find((name) => name === image),
    names,
    createdAt: parseMoment(found["Created"]),
    counts: parseCounts(labels.counts),
    address: parseIpv4(labels.address),
    platformAddress: parseNetworkAddress(
      labels.platformAddress ?? `${labels.address}/${labels.addressBits}`,
    ),
    settings: parseNodeSettings(labels.settings),
    volumeKilobytes: Number.isSafeInteger(kilobytes) ? kilobytes : 0,
    labels,
  };
}

function readVolume(found: unknown): SavedVolume | undefined {
  if (!read.isMapping(found)) return undefined;
  const part = readPart(readLabels(found["Labels"]));
  const volume = part === undefined ? "" : snapshotVolume(part.creationId, part.snapshot, part);
  return part === undefined || found["Name"] !== volume ? undefined : { ...part, volume };
}

const { clusterId, creationId, role, index } = textParsers;
const readPart: read.Reader<Part> = read.object({
  clusterId,
  creationId,
  role,
  index,
  snapshot: parseSnapshotName,
});
