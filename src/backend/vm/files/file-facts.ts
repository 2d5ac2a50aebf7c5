import { createHash } from "node:crypto";
import { cpus } from "node:os";
import { join } from "node:path";
import { nodeCount } from "../../../model/cluster-record.ts";
import * as read from "../../../model/reader.ts";
import { sha256Rule } from "../../../model/rule.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { plainLine } from "../../../system/printable.ts";
import { type ClusterFile, type FilePart, unusableFile } from "../../shared/cluster-file.ts";
import { mostSavedNodes, parseTime, savedClusterFields } from "../../shared/saved-cluster.ts";
import type { NodeName } from "../../contract.ts";
import { parseMachineSettings } from "../cluster-facts.ts";
import { machineFiles } from "../machines/machine-process.ts";
import { newNodes } from "../vm-machines.ts";
import { savedFiles } from "../snapshots/snapshot-files.ts";

const natural = read.refined(read.integer, (found) => (found < 0 ? undefined : found));

/**
 * What disks are layered on, each only above earlier ones. The file may lack those that are above
 * nothing: the images.
 */
const parseLayer = read.object({
  format: read.oneOf("qcow2", "raw"),
  bytes: natural,
  sha256: sha256Rule.read,
  below: read.optional(natural),
});

export type LayerFacts = read.ValueOf<typeof parseLayer>;

/** What a file says about the cluster of virtual machines in it. */
const parseShape = read.object({
  ...savedClusterFields,
  /** When its machines end by themselves; absent: they don't. */
  expiresAt: read.optional(parseTime),
  architecture: read.matching(/^[a-z0-9_]{1,32}$/),
  qemuVersion: read.matching(/^\d{1,4}\.\d{1,4}\.\d{1,4}$/),
  /** See `describeCpu`. */
  cpu: read.refined(read.string, (text) => plainLine(text).slice(0, 200)),
  machines: parseMachineSettings,
  /** For cloud-init, in the order of the nodes. */
  instanceIds: read.list(read.matching(/^[\w-]{1,64}$/)),
  layers: read.list(parseLayer),
  /** The number of the layer below a disk, by the disk's part. */
  below: read.mapping(read.string, natural),
});

export type VmFileFacts = read.ValueOf<typeof parseShape>;

export const keysPart = "keys.json";
export const layerPart = (number: number): string => `layer-${number}`;

/** The parts of one node's machine, and where they are: in the snapshot's folder, or in the cluster's. */
export function nodeParts(
  folders: { readonly snapshot: string; readonly cluster: string },
  node: NodeName,
) {
  const { disk, memory, state, variables } = savedFiles(node);
  const at = (name: string) => ({ name, path: join(folders.snapshot, name) });
  const { program } = machineFiles(folders.cluster, node).flash;
  const flash = { name: disk.replace("disk.", "firmware."), path: program };
  return { disk: at(disk), memory: at(memory), state: at(state), variables: at(variables), flash };
}

/** Tells processors apart that the same saved memory doesn't fit. */
export async function describeCpu(): Promise<string> {
  const info = await readOwnText("/proc/cpuinfo").catch(() => "");
  const features = /^(?:flags|Features)\s*:(.*)$/m.exec(info)?.[1] ?? "";
  const sum = createHash("sha256").update(features).digest("hex").slice(0, 8);
  return `${plainLine(cpus()[0]?.model ?? "") || "unknown"} (${sum})`;
}

/** Throws `snapshot-unusable` if the file's parts aren't exactly those of such a cluster. */
export function readVmFacts({
  manifest: { facts: given, parts },
  shown,
}: Omit<ClusterFile, "path">): VmFileFacts {
  const facts = parseFacts(given);
  if (facts === undefined)
    throw unusableFile(shown, "is damaged: its facts about the cluster are not valid");
  const order = partNames(facts);
  const placeOf = new Map(order.map(({ name }, place) => [name, place]));
  const places = parts.map(({ name }) => placeOf.get(name) ?? -1);
  const found = new Set(places);
  const isOrdered = places.every((place, index) => place > (places[index - 1] ?? -1));
  const isComplete = order.every(({ isNeeded }, place) => !isNeeded || found.has(place));
  if (!isOrdered || !isComplete || !parts.every((part) => isLayerOf(facts, part)))
    throw unusableFile(shown, "is damaged: its parts are not those of its nodes");
  return facts;
}

function partNames({
  counts,
  layers,
}: VmFileFacts): readonly { readonly name: string; readonly isNeeded: boolean }[] {
  const folders = { snapshot: "", cluster: "" };
  const ofNode = (node: NodeName) => {
    const { disk, memory, state, variables, flash } = nodeParts(folders, node);
    return [disk, memory, state, variables, flash].map(({ name }, place) => ({
      name,
      isNeeded: place < 3,
    }));
  };
  return [
    { name: keysPart, isNeeded: true },
    ...layers.map(({ below }, place) => ({
      name: layerPart(place),
      isNeeded: below !== undefined,
    })),
    ...newNodes(counts).flatMap(ofNode),
  ];
}

function isLayerOf({ layers }: VmFileFacts, { name, bytes, sha256 }: FilePart): boolean {
  const layer = layers.find((_, place) => layerPart(place) === name);
  return layer === undefined || (layer.bytes === bytes && layer.sha256 === sha256);
}

const mostLayers = 64;

const parseFacts = read.refined(parseShape, (facts) => {
  const { counts, instanceIds, layers, below } = facts;
  const count = nodeCount(counts);
  const isSound =
    count > 0 &&
    count <= mostSavedNodes &&
    instanceIds.length === count &&
    layers.length <= mostLayers &&
    layers.every(
      (layer, place) =>
        (layer.below ?? -1) < place && (layer.below === undefined || layer.format === "qcow2"),
    ) &&
    Object.values(below).every((place) => place < layers.length);
  return isSound ? facts : undefined;
});
