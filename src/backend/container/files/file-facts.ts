import { nodeCount, nodeReference } from "../../../model/cluster-record.ts";
import { parseIndex, parseRole } from "../../../model/parse-values.ts";
import * as read from "../../../model/reader.ts";
import { sha256Rule } from "../../../model/rule.ts";
import type { NodeName } from "../../contract.ts";
import { type ClusterFile, type FilePart, unusableFile } from "../../shared/cluster-file.ts";
import {
  type SavedCluster,
  mostSavedNodes,
  savedClusterFields,
} from "../../shared/saved-cluster.ts";
import { type Limits, limitFields } from "../limits.ts";
import { parseNetworkAddress } from "../records/read-containers.ts";

/** The facts in a file about its cluster of containers. Nothing else in the file becomes an option of a container. */
export interface ContainerFileFacts extends SavedCluster {
  /** The name that images use, such as `amd64`. */
  readonly architecture: string;
  /** The version on the computer that saved it. */
  readonly cgroupVersion: "1" | "2";
  /** Whether nodes reach each other and nothing else. */
  readonly isOffline?: boolean | undefined;
  /** The name of the image whose layers the file lacks. */
  readonly base?: string | undefined;
  readonly nodes: readonly SavedNodeFacts[];
}

export interface SavedNodeFacts extends NodeName, Partial<Limits> {
  /** The address that the platform knows, such as `172.18.0.2/16`. */
  readonly platformAddress: string;
  /** The SHA-256 checksums of the layers of its image, the lowest first. The file may lack the first ones. */
  readonly layers: readonly string[];
  /** Where its image has volumes. */
  readonly volumes: readonly string[];
}

export const layerPart = (sha256: string): string => `layers/${sha256}`;
/** The contents of a node's volumes. */
export const volumePart = (node: NodeName): string => `volumes/${nodeReference(node)}`;
export const isLayer = ({ name }: Pick<FilePart, "name">): boolean => name.startsWith("layers/");

/** Throws `snapshot-unusable` if the file's parts aren't exactly those of such a cluster. */
export function readContainerFacts({
  manifest: { facts: given, parts },
  shown,
}: Omit<ClusterFile, "path">): ContainerFileFacts {
  const facts = parseFacts(given);
  if (facts === undefined)
    throw unusableFile(shown, "is damaged: its facts about the cluster are not valid");
  const known = new Set(
    facts.nodes.flatMap((node) => [...node.layers.map(layerPart), volumePart(node)]),
  );
  const names = new Set(parts.map(({ name }) => name));
  // Volumes are filled by containers of the images, so these come first.
  const layersEnd = parts.findLastIndex(isLayer);
  const isExpected = (part: FilePart, index: number): boolean =>
    known.has(part.name) &&
    (isLayer(part) ? part.name === layerPart(part.sha256) : index > layersEnd);
  const isWhole = ({ layers }: SavedNodeFacts): boolean =>
    layers.slice(missingLayers(names, layers).length).every((layer) => names.has(layerPart(layer)));
  const isSound =
    names.size === parts.length && parts.every(isExpected) && facts.nodes.every(isWhole);
  if (!isSound) throw unusableFile(shown, "is damaged: its parts are not those of its nodes");
  return facts;
}

/** The first layers of a node, if the file lacks them. `names`: those of the file's parts. */
export function missingLayers(
  names: ReadonlySet<string>,
  layers: readonly string[],
): readonly string[] {
  const first = layers.findIndex((layer) => names.has(layerPart(layer)));
  return first === -1 ? layers : layers.slice(0, first);
}

/** Engines allow fewer. */
const mostLayers = 200;
const mostVolumes = 100;

const parseNode: read.Reader<SavedNodeFacts> = read.object({
  role: parseRole,
  index: parseIndex,
  platformAddress: parseNetworkAddress,
  ...limitFields,
  layers: read.list(sha256Rule.read),
  volumes: read.list(read.matching(/^(?:\/(?!\.{1,2}(?:\/|$))[\w.@+-]{1,255}){1,32}$/)),
});

const parseShape: read.Reader<ContainerFileFacts> = read.object({
  ...savedClusterFields,
  architecture: read.matching(/^[a-z0-9_]{1,32}$/),
  cgroupVersion: read.oneOf("1", "2"),
  isOffline: read.optional(read.boolean),
  base: read.optional(read.matching(/^[a-z0-9][A-Za-z0-9._/:@-]{0,499}$/)),
  nodes: read.list(parseNode),
});

const parseFacts: read.Reader<ContainerFileFacts> = read.refined(parseShape, (facts) => {
  const { counts, nodes } = facts;
  const isSound =
    nodes.length > 0 &&
    nodes.length <= mostSavedNodes &&
    nodes.length === nodeCount(counts) &&
    nodes.every(({ role, index }) => index < counts[role]) &&
    new Set(nodes.map(nodeReference)).size === nodes.length &&
    new Set(nodes.map(({ platformAddress }) => platformAddress)).size === nodes.length &&
    nodes.every(
      ({ layers, volumes }) =>
        layers.length > 0 && layers.length <= mostLayers && volumes.length <= mostVolumes,
    );
  return isSound ? facts : undefined;
});
