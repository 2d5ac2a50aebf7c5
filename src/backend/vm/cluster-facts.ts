import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Counts, Role, Variant, WebScheme } from "../../model/cluster-record.ts";
import { creationOfDirectory } from "../../system/creation-folder.ts";
import { writePrivateFile } from "../../system/private-file.ts";
import { machinesFolder } from "./machine-files.ts";

const schemaVersion = 1;

/** The text of `cluster.json` in a creation's folder: it is there as long as there is anything to destroy. */
export interface ClusterFacts {
  readonly schemaVersion: typeof schemaVersion;
  readonly clusterId: string;
  readonly creationId: string;
  readonly variant: Variant;
  readonly distribution: string;
  readonly counts: Counts;
  readonly webScheme?: WebScheme | undefined;
  /** ISO 8601. */
  readonly createdAt: string | undefined;
  readonly createdBy: string;
  /** Which start of this computer the machines were started in. */
  readonly bootId?: string | undefined;
  /** In launch order. */
  readonly nodes: readonly NodeFacts[];
}

export interface NodeFacts {
  readonly id: string;
  readonly role: Role;
  readonly index: number;
  readonly privateAddress: string;
  /** Ports of 127.0.0.1 that lead to the node's 22, 80 and 443. */
  readonly ports: NodePorts;
}

export interface NodePorts {
  readonly ssh: number;
  readonly http: number;
  readonly https: number;
}

export interface StoredCluster {
  readonly directory: string;
  readonly facts: ClusterFacts;
}

const factsPath = (directory: string): string => join(directory, "cluster.json");

export async function writeClusterFacts(directory: string, facts: Omit<ClusterFacts, "schemaVersion">): Promise<void> {
  await writePrivateFile(factsPath(directory), `${JSON.stringify({ schemaVersion, ...facts }, undefined, 2)}\n`);
}

export async function removeClusterFacts(directory: string): Promise<void> {
  await rm(factsPath(directory), { force: true });
}

/**
 * Every cluster in this folder of creations, also those whose facts are damaged, another version's or another user's: where machines may be, there is
 * something to destroy.
 */
export async function readClusters(root: string): Promise<readonly StoredCluster[]> {
  const names = await readdir(root).catch(() => []);
  const found = await Promise.all(names.map(async (name) => readEitherWay(join(root, name))));
  return found.filter((cluster) => cluster !== undefined);
}

async function readEitherWay(directory: string): Promise<StoredCluster | undefined> {
  return (await readCluster(directory)) ?? (await readRemains(directory));
}

/** A cluster of which no more is known than that it is there. */
async function readRemains(directory: string): Promise<StoredCluster | undefined> {
  const ids = creationOfDirectory(directory);
  const isThere = await stat(machinesFolder(directory)).catch(() => undefined);
  if (ids === undefined || isThere === undefined) return undefined;
  const unknown = { variant: "oss", distribution: "unknown", createdAt: undefined, createdBy: "unknown" } as const;
  const counts = { master: 0, agent: 0, public_agent: 0 };
  return { directory, facts: { schemaVersion, ...ids, ...unknown, counts, nodes: [] } };
}

/** `undefined` where its facts can't be read. */
export async function readCluster(directory: string): Promise<StoredCluster | undefined> {
  try {
    const facts: unknown = JSON.parse(await readFile(factsPath(directory), "utf8"));
    return isClusterFacts(facts) ? { directory, facts } : undefined;
  } catch {
    return undefined;
  }
}

function isClusterFacts(value: unknown): value is ClusterFacts {
  return (
    typeof value === "object" &&
    value !== null &&
    "schemaVersion" in value &&
    value.schemaVersion === schemaVersion &&
    "nodes" in value &&
    Array.isArray(value.nodes)
  );
}
