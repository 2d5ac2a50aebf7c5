import { access, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { ClusterError } from "../../errors.ts";
import { nodeReference } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import {
  parseClusterId,
  parseCountsObject,
  parseCreationId,
  parseDistribution,
  parseIndex,
  parseIpv4,
  parsePlatform,
  parsePort,
  parseRole,
  parseVariant,
  parseWebUi,
} from "../../model/parse-values.ts";
import * as read from "../../model/reader.ts";
import {
  abandonedCreations,
  creationOfDirectory,
  isOwnFolder,
} from "../../store/creation-folder.ts";
import { plainLine } from "../../system/printable.ts";
import type { Clock } from "../../system/runtime.ts";
import { errorCode, namesIn, writePrivateFile } from "../../system/files/private-file.ts";
import { isOver } from "../shared/lifetimes.ts";
import { clusterExists } from "../shared/machine-errors.ts";
import type { ForeignResource } from "../shared/foreign-resource.ts";
import { parseTime } from "../shared/saved-cluster.ts";
import { parseBaseLayer } from "./images/base-layers.ts";
import { machinesFolder } from "./machines/machine-process.ts";
import { hardwareFields } from "./hardware.ts";
import { accelerators } from "./options.ts";
import { readOwnJson, parseJson } from "../../system/files/read-text.ts";

const schemaVersion = 1;

export const parseTemplateName: read.Reader<string> = read.matching(/^[0-9a-f]{16}$/);

/** What all machines of a cluster have in common. */
export const parseMachineSettings = read.object({
  accelerator: read.oneOf(...accelerators),
  isSandboxed: read.boolean,
  ...hardwareFields,
  /**
   * Whether they have a device that tells their kernel of each continuation. Copies of templates
   * have it in any case.
   */
  hasGenerationId: read.optional(read.boolean),
  /** Whether they reach each other and nothing else. */
  isOffline: read.optional(read.boolean),
  /** The name of the template from which the machines were made. Absent: they booted. */
  template: read.optional(parseTemplateName),
});

export type MachineSettings = read.ValueOf<typeof parseMachineSettings>;

const parseNode = read.object({
  id: read.matching(/^vm-[0-9a-f]{8}-[0-9]{1,3}$/),
  role: parseRole,
  index: parseIndex,
  privateAddress: parseIpv4,
  /** Ports of 127.0.0.1 that lead to the node's port 22 and its ports for HTTP and HTTPS; see webPortsOf. */
  ports: read.object({ ssh: parsePort, http: parsePort, https: parsePort }),
});

export type NodeFacts = read.ValueOf<typeof parseNode>;
export type NodePorts = NodeFacts["ports"];

const line: read.Reader<string> = (found) => plainLine(found) || undefined;

/** The content of `cluster.json` in a creation's folder. The file exists as long as there is anything to destroy. */
const readFacts = read.object({
  schemaVersion: read.oneOf(schemaVersion),
  clusterId: parseClusterId,
  creationId: parseCreationId,
  variant: parseVariant,
  distribution: parseDistribution,
  counts: parseCountsObject,
  webUi: read.optional(parseWebUi),
  platform: read.optional(parsePlatform),
  createdAt: read.optional(parseTime),
  /** When the machines end by themselves. */
  expiresAt: read.optional(parseTime),
  createdBy: line,
  /** The boot of this computer in which the machines were started. */
  bootId: read.optional(line),
  /** How the machines were started last. Absent for clusters of earlier versions. */
  machines: read.optional(parseMachineSettings),
  /** What the machines' disks are layered on. Absent for clusters of earlier versions. */
  base: read.optional(read.list(parseBaseLayer)),
  /** In launch order. */
  nodes: read.refined(read.list(parseNode), (nodes) =>
    new Set(nodes.map(nodeReference)).size === nodes.length ? nodes : undefined,
  ),
});

export type ClusterFacts = read.ValueOf<typeof readFacts>;

export interface StoredCluster {
  readonly directory: string;
  readonly facts: ClusterFacts;
}

export const clusterFactsPath = (directory: string): string => join(directory, "cluster.json");

/** Throws, and writes nothing, if no command could read the facts back. */
export async function writeClusterFacts(
  directory: string,
  facts: Omit<ClusterFacts, "schemaVersion">,
): Promise<void> {
  const text = JSON.stringify({ schemaVersion, ...facts }, undefined, 2);
  if (parseClusterFacts(parseJson(text), directory) === undefined) {
    throw new TypeError(`No command could read this creation: ${text}`);
  }
  await writePrivateFile(clusterFactsPath(directory), `${text}\n`);
}

export async function removeClusterFacts(directory: string): Promise<void> {
  await rm(clusterFactsPath(directory), { force: true });
}

/**
 * Returns every cluster in this folder of creations, including those whose facts are damaged, from
 * another version or another user's: where machines may exist, there is something to destroy.
 */
export async function readClusters(root: string): Promise<readonly StoredCluster[]> {
  const names = await namesIn(root);
  const directories = names.map((name) => join(root, name));
  const found = await Promise.all(
    directories.map(
      async (directory) => (await readCluster(directory)) ?? (await readRemains(directory)),
    ),
  );
  return found.filter((cluster) => cluster !== undefined);
}

/** Returns links that have the name of a cluster's folder but lead elsewhere: nothing there is ours. */
export async function foreignFolders(root: string): Promise<readonly ForeignResource[]> {
  const names = await namesIn(root);
  const found = await Promise.all(
    names
      .map((name) => join(root, name))
      .filter((directory) => creationOfDirectory(directory) !== undefined)
      .map(async (directory) => ({ directory, isOwn: await isOwnFolder(directory) })),
  );
  const why = "it is a link to another place";
  return found
    .filter(({ isOwn }) => !isOwn)
    .map(({ directory }) => ({ what: `folder ${basename(directory)}`, why }));
}

/** Returns a cluster about which nothing is known except that it exists. */
async function readRemains(directory: string): Promise<StoredCluster | undefined> {
  const ids = creationOfDirectory(directory);
  if (ids === undefined || !(await hasMachines(directory))) return undefined;
  const unknown = {
    variant: "oss",
    distribution: "unknown",
    createdAt: undefined,
    createdBy: "unknown",
  } as const;
  const counts = { master: 0, agent: 0, public_agent: 0 };
  return { directory, facts: { schemaVersion, ...ids, ...unknown, counts, nodes: [] } };
}

/**
 * Throws `cluster-exists` if anything with this cluster id exists; `leaving` are creations that are
 * about to be removed.
 */
export async function assertIdIsFree(
  root: string,
  clusterId: string,
  leaving: readonly string[],
): Promise<void> {
  const clusters = await readClusters(root);
  const isTaken = clusters.some(
    ({ facts }) => facts.clusterId === clusterId && !leaving.includes(facts.creationId),
  );
  if (isTaken) throw clusterExists(clusterId, { removal: removalCommand(clusterId) });
}

/**
 * Throws `cluster-exists`, unless a create that was killed on this machine has the id, or a cluster
 * whose time is over: those are removed before the claim.
 */
export async function assertIdCanBeClaimed(
  root: string,
  clusterId: string,
  clock: Clock,
): Promise<void> {
  const [abandoned, clusters] = await Promise.all([
    abandonedCreations(root, clusterId),
    readClusters(root),
  ]);
  const expired = clusters.map(({ facts }) => facts).filter((facts) => isOver(endOf(facts), clock));
  const leaving = [...abandoned.map(({ creation }) => creation), ...expired].map(
    ({ creationId }) => creationId,
  );
  await assertIdIsFree(root, clusterId, leaving);
}

/** Throws `machine-failed` if the version that created the cluster did not record them. `lack` continues "which". */
export function machinesOf(
  { machines, clusterId, createdBy }: ClusterFacts,
  lack: string,
  hint: string,
): MachineSettings {
  if (machines !== undefined) return machines;
  const message = `Cluster "${clusterId}" was created by version ${outside(createdBy)}, which ${lack}.`;
  throw new ClusterError("machine-failed", message, { hint, facts: { cluster: clusterId } });
}

/** The moment of the facts. */
export const endOf = ({ expiresAt }: Pick<ClusterFacts, "expiresAt">) => ({
  expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt),
});

/**
 * If the folder is a link to another place, its contents aren't ours to remove. One that this user
 * can't look into, such as root's, may have some.
 */
async function hasMachines(directory: string): Promise<boolean> {
  if (!(await isOwnFolder(directory))) return false;
  return await access(machinesFolder(directory)).then(
    () => true,
    (error: unknown) => !["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? ""),
  );
}

/** Returns `undefined` if the cluster's facts can't be read. */
export async function readCluster(directory: string): Promise<StoredCluster | undefined> {
  if (!(await isOwnFolder(directory).catch(() => false))) return undefined;
  const facts = await readOwnJson(clusterFactsPath(directory), (found) =>
    parseClusterFacts(found, directory),
  );
  return facts === undefined ? undefined : { directory, facts };
}

/**
 * Parses the JSON of `cluster.json`; returns `undefined` if it has another shape or belongs to a
 * different creation than its folder.
 */
export function parseClusterFacts(found: unknown, directory: string): ClusterFacts | undefined {
  const name = creationOfDirectory(directory);
  const facts = readFacts(found);
  if (name === undefined || facts?.clusterId !== name.clusterId) return undefined;
  return facts.creationId === name.creationId ? facts : undefined;
}

export const removalCommand = (clusterId: string): string =>
  `cluster-vm destroy --cluster-id ${clusterId}`;
