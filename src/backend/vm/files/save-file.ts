import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createHash } from "node:crypto";
import * as read from "../../../model/reader.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { sha256OfFile } from "../../../system/files/byte-source.ts";
import { isAccessible } from "../../../system/files/private-file.ts";
import { parseJson } from "../../../system/files/read-text.ts";
import type { Progress } from "../../../system/runtime.ts";
import type { SnapshotFile } from "../../../model/snapshot.ts";
import { megabytesText } from "../../../system/amounts.ts";
import { bytesOf } from "../../shared/cluster-file.ts";
import { assertWritable, knownParts, writeClusterFile } from "../../shared/write-cluster-file.ts";
import type { StoredCluster } from "../cluster-facts.ts";
import { readInstanceId, readKeys } from "../copies/resolve-copy.ts";
import { readUnchanged } from "../images/base-layers.ts";
import { machineFiles } from "../machines/machine-process.ts";
import { type Qemu, qemuFailure } from "../qemu/qemu.ts";
import {
  type FileFacts,
  type SnapshotFacts,
  type StoredSnapshot,
  contentsOf,
} from "../snapshots/snapshot-files.ts";
import {
  type LayerFacts,
  type VmFileFacts,
  describeCpu,
  keysPart,
  layerPart,
  nodeParts,
} from "./file-facts.ts";

const atOnce = 4;

export interface FileSource {
  readonly stored: StoredCluster;
  readonly snapshot: StoredSnapshot;
  readonly saved: SnapshotFacts;
  readonly progress: Progress;
}

type Part = Parameters<typeof knownParts>[0][number];

/**
 * Writes a snapshot to a file, for a caller that holds the lock of the cluster's machines. Throws
 * what `writeClusterFile` does.
 */
export async function saveFile(
  qemu: Qemu,
  source: FileSource,
  { path, withoutBase, ...how }: SnapshotFile,
  signal: AbortSignal,
): Promise<void> {
  await assertWritable(path, how.replaces);
  using step = source.progress.start("Save the cluster as a file");
  const keys = await keysOf(source);
  const disks = await disksOf(source, signal);
  const layers = await readLayers(qemu, { disks, facts: source.stored.facts }, signal);
  const files = disks.map(({ name, path: from, facts }): Part => ({
    name,
    ...facts,
    contents: () => contentsOf(from),
  }));
  const images = imagesOf(layers);
  const included = layers.list.flatMap(({ path: from, bytes, sha256 }, number): readonly Part[] =>
    withoutBase && images.has(number)
      ? []
      : [{ name: layerPart(number), bytes, sha256, contents: () => createReadStream(from) }],
  );
  const parts = [keys, ...included, ...files];
  const total = bytesOf(parts);
  const onProgress = (bytes: number): void => step.update(megabytesText(bytes, total));
  const facts = await factsOf(qemu, source, layers);
  const privateFolder = source.stored.directory;
  const contents = {
    facts,
    parts: knownParts(parts),
    mostParts: parts.length,
    privateFolder,
    onProgress,
  };
  await writeClusterFile({ path, ...how, backend: "vm", ...contents }, signal);
  step.done(megabytesText((await stat(path)).size));
}

/** The keys that open the saved machines, and by which they are known. */
async function keysOf({ stored }: FileSource): Promise<Part> {
  const { privateKey, hostKeys } = await readKeys(
    { id: stored.facts.clusterId, directory: stored.directory },
    stored.facts.nodes,
  );
  const text = Buffer.from(
    JSON.stringify({ privateKey, hostKeys: hostKeys.map((key) => key.toString("base64")) }),
  );
  const sha256 = createHash("sha256").update(text).digest("hex");
  return {
    name: keysPart,
    bytes: text.length,
    sha256,
    contents: async function* () {
      yield text;
    },
  };
}

interface SavedDisk {
  readonly name: string;
  readonly path: string;
  readonly facts: FileFacts;
}

/** The files of all machines. Those of the snapshot have sums already. */
async function disksOf(
  { stored, snapshot, saved }: FileSource,
  signal: AbortSignal,
): Promise<readonly SavedDisk[]> {
  const folders = { snapshot: snapshot.folder, cluster: stored.directory };
  const found = await mapConcurrently(
    stored.facts.nodes,
    atOnce,
    async (node): Promise<readonly SavedDisk[]> => {
      const { disk, memory, state, variables, flash } = nodeParts(folders, node);
      const kept = [disk, memory, state, variables].flatMap(({ name, path }) => {
        const facts = saved.files[name];
        return facts === undefined ? [] : [{ name, path, facts }];
      });
      return (await isAccessible(flash.path))
        ? [...kept, { ...flash, facts: await describe(flash.path, signal) }]
        : kept;
    },
    signal,
  );
  return found.flat();
}

const describe = async (path: string, signal: AbortSignal): Promise<FileFacts> => ({
  bytes: (await stat(path)).size,
  sha256: await sha256OfFile(path, signal),
});

interface Layers {
  readonly list: readonly (LayerFacts & { readonly path: string })[];
  readonly below: Readonly<Record<string, number>>;
}

/** Follows the disks to the images that they are layered on, which must be those of the creation. */
async function readLayers(
  qemu: Qemu,
  { disks, facts }: { readonly disks: readonly SavedDisk[] } & Pick<StoredCluster, "facts">,
  signal: AbortSignal,
): Promise<Layers> {
  const list: (LayerFacts & { readonly path: string })[] = [];
  const numberOf = async (path: string): Promise<number | undefined> => {
    const under = await readBacking(qemu, path, signal);
    if (under === undefined) return undefined;
    const known = list.findIndex((layer) => layer.path === under.path);
    if (known !== -1) return known;
    const numberBelow = async () =>
      under.format === "raw" ? undefined : await numberOf(under.path);
    return (
      list.push({ ...under, ...(await readUnchanged(under.path, facts, numberBelow, signal)) }) - 1
    );
  };
  const below: Record<string, number> = {};
  for (const { name, path } of disks) {
    const number = name.endsWith(".qcow2") ? await numberOf(path) : undefined;
    if (number !== undefined) below[name] = number;
  }
  return { list, below };
}

/**
 * The layers below all others of the nodes' disks. Firmware of earlier versions has such layers
 * too, but they are not kept among the images.
 */
function imagesOf({ list, below }: Layers): ReadonlySet<number> {
  const bottomOf = (number: number): number => {
    const under = list[number]?.below;
    return under === undefined ? number : bottomOf(under);
  };
  const disks = Object.entries(below).filter(([name]) => name.endsWith("/disk.qcow2"));
  return new Set(disks.map(([, number]) => bottomOf(number)));
}

const parseBacking = read.object({
  "full-backing-filename": read.optional(read.string),
  "backing-filename-format": read.optional(read.oneOf("qcow2", "raw")),
});

async function readBacking(
  qemu: Qemu,
  path: string,
  signal: AbortSignal,
): Promise<{ readonly path: string; readonly format: LayerFacts["format"] } | undefined> {
  const end = await qemu.image(["info", "--output=json", "-f", "qcow2", path], signal);
  const found = end.status === 0 ? parseBacking(parseJson(end.stdout)) : undefined;
  if (found === undefined) throw qemuFailure("qemu-img info", end);
  const { "full-backing-filename": under, "backing-filename-format": format = "raw" } = found;
  return under === undefined ? undefined : { path: under, format };
}

async function factsOf(
  qemu: Qemu,
  { stored, snapshot, saved }: FileSource,
  { list, below }: Layers,
): Promise<VmFileFacts> {
  const { clusterId, variant, distribution, counts, expiresAt, nodes } = stored.facts;
  const { webUi, platform } = stored.facts;
  const instanceIds = await Promise.all(
    nodes.map(
      async (node) => (await readInstanceId(machineFiles(stored.directory, node).seed)) ?? node.id,
    ),
  );
  const { createdAt, qemuVersion, machines } = saved;
  return {
    clusterId,
    snapshot: snapshot.name,
    createdAt,
    variant,
    distribution,
    counts,
    webUi,
    platform,
    expiresAt,
    architecture: qemu.architecture.name,
    qemuVersion,
    cpu: await describeCpu(),
    machines,
    instanceIds,
    layers: list.map(({ format, bytes, sha256, below: under }) => ({
      format,
      bytes,
      sha256,
      below: under,
    })),
    below,
  };
}
