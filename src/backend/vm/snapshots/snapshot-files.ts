import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { nodeReference, type NodeRecord } from "../../../model/cluster-record.ts";
import { parseMoment } from "../../../model/parse-values.ts";
import { parseSnapshotName } from "../../../model/snapshot-name.ts";
import { isMapping } from "../../../system/is-mapping.ts";
import { type MachineSettings, parseMachineSettings } from "../cluster-facts.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { parseJson } from "../../../system/parse-json.ts";

const schemaVersion = 1;

/** The content of `snapshot.json` in a snapshot's folder. */
export interface SnapshotFacts {
  readonly schemaVersion: typeof schemaVersion;
  /** ISO 8601. */
  readonly createdAt: string;
  /** The QEMU that ran the machines, such as `7.2.22`. */
  readonly qemuVersion: string;
  readonly machines: MachineSettings;
  /** The files of all machines, by their paths in the snapshot's folder. */
  readonly files: Readonly<Record<string, FileFacts>>;
}

export interface FileFacts {
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

/** A snapshot's folder. Its name begins with a dot until it is complete. */
export interface StoredSnapshot {
  readonly name: string;
  readonly folder: string;
  readonly isComplete: boolean;
}

export const snapshotsFolder = (directory: string): string => join(directory, "snapshots");

export const snapshotFolder = (directory: string, name: string): string => join(snapshotsFolder(directory), name);

/** The folder of a snapshot that is being made or deleted. No name begins with a dot. */
export const draftFolder = (directory: string, name: string): string => snapshotFolder(directory, `.${name}`);

/** What a snapshot holds of one machine, by path within its folder. */
export const savedFiles = (node: Pick<NodeRecord, "role" | "index">) => ({
  disk: join(nodeReference(node), "disk.qcow2"),
  memory: join(nodeReference(node), "memory"),
  /** Exists only for machines whose firmware isn't built in. */
  variables: join(nodeReference(node), "firmware-variables.qcow2"),
});

/** Finds the cluster's snapshots, complete or not. */
export async function readSnapshotFolders(directory: string): Promise<readonly StoredSnapshot[]> {
  const names = await readdir(snapshotsFolder(directory)).catch(() => []);
  return names
    .toSorted((a, b) => a.localeCompare(b))
    .flatMap((name) => {
      const known = parseSnapshotName(name.replace(/^\./, ""));
      if (known === undefined) return [];
      return [{ name: known, folder: snapshotFolder(directory, name), isComplete: !name.startsWith(".") }];
    });
}

export const factsPath = (folder: string): string => join(folder, "snapshot.json");

export const factsText = (facts: Omit<SnapshotFacts, "schemaVersion">): string =>
  `${JSON.stringify({ schemaVersion, ...facts }, undefined, 2)}\n`;

/** Returns `undefined` if the file is missing, damaged or from a newer version. */
export async function readSnapshotFacts(folder: string): Promise<SnapshotFacts | undefined> {
  try {
    return parseSnapshotFacts(parseJson(await readOwnText(factsPath(folder))));
  } catch {
    return undefined;
  }
}

export function parseSnapshotFacts(found: unknown): SnapshotFacts | undefined {
  if (!isMapping(found) || found["schemaVersion"] !== schemaVersion) return undefined;
  const createdAt = parseMoment(found["createdAt"])?.toISOString();
  const { qemuVersion } = found;
  const machines = parseMachineSettings(found["machines"]);
  const files = parseFiles(found["files"]);
  if (typeof qemuVersion !== "string" || !/^\d+\.\d+\.\d+$/.test(qemuVersion)) return undefined;
  if (createdAt === undefined || machines === undefined || files === undefined) return undefined;
  return { schemaVersion, createdAt, qemuVersion, machines, files };
}

function parseFiles(found: unknown): Readonly<Record<string, FileFacts>> | undefined {
  if (!isMapping(found)) return undefined;
  const entries = Object.entries(found).flatMap(([path, file]): [string, FileFacts][] => {
    const { bytes, sha256 } = isMapping(file) ? file : {};
    if (!/^[a-z]+(?:_[a-z]+)?_\d{1,3}\/[a-z0-9.-]+$/.test(path)) return [];
    if (typeof bytes !== "number" || typeof sha256 !== "string") return [];
    return [[path, { bytes, sha256 }]];
  });
  return entries.length === Object.keys(found).length ? Object.fromEntries(entries) : undefined;
}

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
