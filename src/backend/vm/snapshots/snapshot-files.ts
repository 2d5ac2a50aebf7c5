import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { type ClusterName, type NodeRecord, nodeReference } from "../../../model/cluster-record.ts";
import { parseSnapshotName } from "../../../model/parse-values.ts";
import * as read from "../../../model/reader.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { isAccessible, isDiskFull, namesIn } from "../../../system/files/private-file.ts";
import { readOwnJson, parseJson } from "../../../system/files/read-text.ts";
import { packBlocks } from "../../../system/files/sparse.ts";
import { notWhole, snapshotNotFound } from "../../shared/machine-errors.ts";
import { parseTime } from "../../shared/saved-cluster.ts";
import { type ClusterFacts, type NodeFacts, parseMachineSettings } from "../cluster-facts.ts";
import { assertLayersUnchanged } from "../images/base-layers.ts";
import { identityOf } from "../images/image-verification.ts";
import { type Qemu, qemuVersion, release } from "../qemu/qemu.ts";

const schemaVersion = 1;

const parseFile = read.object({
  /** The number of bytes of `contentsOf`. */
  bytes: read.number,
  sha256: read.string,
  /** See `identityOf`. A file that nobody has touched since is still what it was, and needs no reading. */
  identity: read.optional(read.string),
});

export type FileFacts = read.ValueOf<typeof parseFile>;

/** The content of `snapshot.json` in a snapshot's folder. */
export const parseSnapshotFacts = read.object({
  schemaVersion: read.oneOf(schemaVersion),
  createdAt: parseTime,
  /** That of the QEMU that ran the machines. */
  qemuVersion: read.matching(/^\d+\.\d+\.\d+$/),
  machines: parseMachineSettings,
  /** The files of all machines, by their paths in the snapshot's folder. */
  files: read.mapping(read.matching(/^[a-z]+(?:_[a-z]+)?_\d{1,3}\/[a-z0-9.-]+$/), parseFile),
});

export type SnapshotFacts = read.ValueOf<typeof parseSnapshotFacts>;

/** A snapshot's folder. Its name begins with a dot until it is complete. */
export interface StoredSnapshot {
  readonly name: string;
  readonly folder: string;
  readonly isComplete: boolean;
}

export const snapshotsFolder = (directory: string): string => join(directory, "snapshots");

export const snapshotFolder = (directory: string, name: string): string =>
  join(snapshotsFolder(directory), name);

/** The folder of a snapshot that is being made or deleted. No name begins with a dot. */
export const draftFolder = (directory: string, name: string): string =>
  snapshotFolder(directory, `.${name}`);

/** What a snapshot holds of one machine, by path within its folder. */
export const savedFiles = (node: Pick<NodeRecord, "role" | "index">) => ({
  disk: join(nodeReference(node), "disk.qcow2"),
  /** All of the machine's memory, with holes where it is empty. */
  memory: join(nodeReference(node), "memory"),
  /** The state of everything else. */
  state: join(nodeReference(node), "state"),
  /** Exists only for machines whose firmware isn't built in. */
  variables: join(nodeReference(node), "firmware-variables.qcow2"),
});

/** What stands for a saved file in its checksum, and in a file with the cluster. */
export const contentsOf = (path: string): AsyncIterable<Uint8Array> =>
  isMemory(path) ? packBlocks(path) : createReadStream(path);

export const isMemory = (path: string): boolean => basename(path) === "memory";

/** Reads a file that doesn't change in the meantime. */
export async function describeContents(path: string, signal: AbortSignal): Promise<FileFacts> {
  const [hash, identity] = [createHash("sha256"), await identityOf(path)];
  let bytes = 0;
  for await (const chunk of contentsOf(path)) {
    signal.throwIfAborted();
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest("hex"), identity };
}

/** Returns the error to throw if a node's files cannot be copied: a full disk gets an error that says so. */
export const copyFailure = (
  error: unknown,
  node: NodeFacts,
  aim: "saved" | "restored" | "copied",
): unknown =>
  isDiskFull(error)
    ? new ClusterError(
        "capacity-lacking",
        `The disk is full: ${nodeReference(node)} cannot be ${aim}.`,
        {
          hint: `Free some space, or delete a snapshot.${aim === "restored" ? " Nothing was stopped." : ""}`,
          cause: error,
        },
      )
    : error;

export async function readSnapshotFolders(directory: string): Promise<readonly StoredSnapshot[]> {
  const names = await namesIn(snapshotsFolder(directory));
  return names
    .toSorted((a, b) => a.localeCompare(b))
    .flatMap((name) => {
      const known = parseSnapshotName(name.replace(/^\./, ""));
      if (known === undefined) return [];
      return [
        { name: known, folder: snapshotFolder(directory, name), isComplete: !name.startsWith(".") },
      ];
    });
}

export const factsPath = (folder: string): string => join(folder, "snapshot.json");

export const factsText = (facts: Omit<SnapshotFacts, "schemaVersion">): string =>
  `${JSON.stringify({ schemaVersion, ...facts }, undefined, 2)}\n`;

/** Returns `undefined` if the file is missing, damaged or from a newer version. */
export const readSnapshotFacts = async (folder: string): Promise<SnapshotFacts | undefined> =>
  readOwnJson(factsPath(folder), parseSnapshotFacts);

/** The space that a snapshot's files take on the disk. */
export async function usedBytes(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = await Promise.all(
    names.map(async (name) =>
      stat(join(folder, name)).then(
        ({ blocks }) => blocks * 512,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

const atOnce = 4;

interface Checked {
  readonly cluster: ClusterName;
  /** The cluster's. */
  readonly facts: Pick<ClusterFacts, "clusterId" | "nodes" | "base">;
  readonly snapshot: StoredSnapshot;
}

const unusable = (
  { id }: ClusterName,
  { name }: StoredSnapshot,
  why: string,
  hint: string,
): ClusterError =>
  new ClusterError("snapshot-unusable", `The snapshot "${name}" of cluster "${id}" ${why}.`, {
    hint,
    facts: { cluster: id, snapshot: name },
  });

const deletion = "Nothing was stopped. Delete the snapshot, and make another one.";

/** Reads a snapshot whose files are about to be read anyway. Throws `snapshot-unusable` unless all are there. */
export async function assertAllThere(
  cluster: ClusterName,
  { facts: { nodes, ...own }, snapshot }: Omit<Checked, "cluster">,
  signal: AbortSignal,
): Promise<SnapshotFacts> {
  const facts = await readSnapshotFacts(snapshot.folder);
  if (facts === undefined)
    throw unusable(cluster, snapshot, "is damaged: its snapshot.json cannot be read", deletion);
  for (const path of new Set([...Object.keys(facts.files), ...requiredFiles(nodes)])) {
    const isThere =
      facts.files[path] !== undefined && (await isAccessible(join(snapshot.folder, path)));
    if (!isThere) throw unusable(cluster, snapshot, `is damaged: ${path} is missing`, deletion);
  }
  await assertLayersUnchanged(own, signal);
  return facts;
}

/**
 * Reads a snapshot and checks everything that a restore relies on. Throws `snapshot-unusable` if a
 * file is missing or differs from what was saved, and if this QEMU can't read memory that another
 * version wrote.
 */
export async function checkSnapshot(
  qemu: Qemu,
  { cluster, facts: { nodes, ...own }, snapshot }: Checked,
  signal: AbortSignal,
): Promise<SnapshotFacts> {
  const refuse = (why: string, hint = deletion): ClusterError =>
    unusable(cluster, snapshot, why, hint);
  const facts = await readSnapshotFacts(snapshot.folder);
  if (facts === undefined) throw refuse("is damaged: its snapshot.json cannot be read");
  const [version, problems] = await Promise.all([
    qemuVersion(qemu, signal),
    mapConcurrently(
      [...new Set([...Object.keys(facts.files), ...requiredFiles(nodes)])],
      atOnce,
      async (path) => fileProblem(snapshot.folder, path, facts, signal),
      signal,
    ),
  ]);
  if (release(version) !== release(facts.qemuVersion)) {
    const text = `was made by QEMU ${facts.qemuVersion}, and this computer has ${version}`;
    throw refuse(text, "Nothing was stopped. Use the QEMU that made it, or make another snapshot.");
  }
  const problem = problems.find((each) => each !== undefined);
  if (problem !== undefined) throw refuse(`is damaged: ${problem}`);
  const missing = await missingImage(qemu, { nodes, snapshot }, signal);
  if (missing !== undefined) throw refuse(`needs the image ${missing}, which is not there`);
  await assertLayersUnchanged(own, signal);
  return facts;
}

const requiredFiles = (nodes: readonly NodeFacts[]): readonly string[] =>
  nodes.flatMap((node) => [savedFiles(node).disk, savedFiles(node).memory, savedFiles(node).state]);

async function fileProblem(
  folder: string,
  path: string,
  { files }: SnapshotFacts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const [known, whole] = [files[path], join(folder, path)];
  const identity = await identityOf(whole).catch(() => undefined);
  if (known === undefined || identity === undefined) return `${path} is missing`;
  if (known.identity === identity) return undefined;
  const { bytes, sha256 } = await describeContents(whole, signal);
  return bytes === known.bytes && sha256 === known.sha256 ? undefined : `${path} has changed`;
}

async function missingImage(
  qemu: Qemu,
  { nodes, snapshot }: Pick<Checked["facts"], "nodes"> & Pick<Checked, "snapshot">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const [first] = nodes;
  if (first === undefined) return undefined;
  const end = await qemu.image(
    ["info", "--output=json", join(snapshot.folder, savedFiles(first).disk)],
    signal,
  );
  const image =
    end.status === 0
      ? read.field("full-backing-filename", read.string)(parseJson(end.stdout))
      : undefined;
  return image === undefined || (await isAccessible(image)) ? undefined : image;
}

/** Finds a complete snapshot. Throws `snapshot-not-found`, or `snapshot-unusable` if only a part of it is there. */
export async function findSnapshot(cluster: ClusterName, name: string): Promise<StoredSnapshot> {
  const snapshot = await findAnySnapshot(cluster, name);
  if (snapshot.isComplete) return snapshot;
  throw notWhole(cluster, name);
}

/** Finds a snapshot, complete or not. Throws `snapshot-not-found`. */
export async function findAnySnapshot(cluster: ClusterName, name: string): Promise<StoredSnapshot> {
  const snapshots = await readSnapshotFolders(cluster.directory);
  const found = snapshots.filter((snapshot) => snapshot.name === name);
  const best = found.find(({ isComplete }) => isComplete) ?? found[0];
  if (best !== undefined) return best;
  throw snapshotNotFound(cluster, name, [...new Set(snapshots.map((snapshot) => snapshot.name))]);
}
