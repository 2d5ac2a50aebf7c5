import { readdir, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { type Counts, nodeReference, type Role, type Variant, type WebUi } from "../../model/cluster-record.ts";
import {
  parseCountsObject,
  parseDistribution,
  parseIndex,
  parseIpv4,
  parseMoment,
  parsePort,
  parseRole,
  parseVariant,
  parseWebUi,
} from "../../model/parse-values.ts";
import { creationOfDirectory, isOwnFolder } from "../../store/creation-folder.ts";
import { isMapping } from "../../system/checked.ts";
import { plainLine } from "../../system/printable.ts";
import { writePrivateFile } from "../../system/files/private-file.ts";
import { clusterExists } from "../shared/machine-errors.ts";
import type { ForeignResource } from "../shared/foreign-resource.ts";
import { machinesFolder } from "./machines/machine-process.ts";
import { type Accelerator, accelerators } from "./options.ts";
import { readOwnText } from "../../system/files/read-text.ts";
import { parseJson } from "../../system/parse-json.ts";

const schemaVersion = 1;

/** The content of `cluster.json` in a creation's folder. The file exists as long as there is anything to destroy. */
export interface ClusterFacts {
  readonly schemaVersion: typeof schemaVersion;
  readonly clusterId: string;
  readonly creationId: string;
  readonly variant: Variant;
  readonly distribution: string;
  readonly counts: Counts;
  readonly webUi?: WebUi | undefined;
  /** ISO 8601. */
  readonly createdAt: string | undefined;
  readonly createdBy: string;
  /** The boot of this computer in which the machines were started. */
  readonly bootId?: string | undefined;
  /** How the machines were started last. Absent for clusters of earlier versions. */
  readonly machines?: MachineSettings | undefined;
  /** In launch order. */
  readonly nodes: readonly NodeFacts[];
}

/** What all machines of a cluster have in common. */
export interface MachineSettings {
  readonly accelerator: Accelerator;
  readonly isSandboxed: boolean;
  readonly memoryMegabytes: number;
  readonly cpus: number;
}

export interface NodeFacts {
  readonly id: string;
  readonly role: Role;
  readonly index: number;
  readonly privateAddress: string;
  /** Ports of 127.0.0.1 that lead to the node's port 22 and its ports for HTTP and HTTPS; see webPortsOf. */
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

/** Throws, and writes nothing, if no command could read the facts back. */
export async function writeClusterFacts(directory: string, facts: Omit<ClusterFacts, "schemaVersion">): Promise<void> {
  const text = JSON.stringify({ schemaVersion, ...facts }, undefined, 2);
  if (parseClusterFacts(parseJson(text), directory) === undefined) {
    throw new TypeError(`No command could read this creation: ${text}`);
  }
  await writePrivateFile(factsPath(directory), `${text}\n`);
}

export async function removeClusterFacts(directory: string): Promise<void> {
  await rm(factsPath(directory), { force: true });
}

/**
 * Returns every cluster in this folder of creations, including those whose facts are damaged, from another version or another user's: where machines
 * may exist, there is something to destroy.
 */
export async function readClusters(root: string): Promise<readonly StoredCluster[]> {
  const names = await readdir(root).catch(() => []);
  const found = await Promise.all(names.map(async (name) => readEitherWay(join(root, name))));
  return found.filter((cluster) => cluster !== undefined);
}

/** Returns links that have the name of a cluster's folder but lead elsewhere: nothing there is ours. */
export async function foreignFolders(root: string): Promise<readonly ForeignResource[]> {
  const names = await readdir(root).catch(() => []);
  const found = await Promise.all(
    names
      .map((name) => join(root, name))
      .filter((directory) => creationOfDirectory(directory) !== undefined)
      .map(async (directory) => ({ directory, isOwn: await isOwnFolder(directory) })),
  );
  const why = "it is a link to another place";
  return found.filter(({ isOwn }) => !isOwn).map(({ directory }) => ({ what: `folder ${basename(directory)}`, why }));
}

async function readEitherWay(directory: string): Promise<StoredCluster | undefined> {
  return (await readCluster(directory)) ?? (await readRemains(directory));
}

/** Returns a cluster about which nothing is known except that it exists. */
async function readRemains(directory: string): Promise<StoredCluster | undefined> {
  const ids = creationOfDirectory(directory);
  if (ids === undefined || !(await hasMachines(directory))) return undefined;
  const unknown = { variant: "oss", distribution: "unknown", createdAt: undefined, createdBy: "unknown" } as const;
  const counts = { master: 0, agent: 0, public_agent: 0 };
  return { directory, facts: { schemaVersion, ...ids, ...unknown, counts, nodes: [] } };
}

/** Throws `cluster-exists` if anything with this cluster id exists; `leaving` are creations that are about to be removed. */
export function assertIdIsFree(
  clusters: readonly StoredCluster[],
  clusterId: string,
  leaving: readonly string[],
): void {
  const isTaken = clusters.some(({ facts }) => facts.clusterId === clusterId && !leaving.includes(facts.creationId));
  if (isTaken) throw clusterExists(clusterId, { removal: removalCommand(clusterId) });
}

/** If the folder is a link to another place, its contents aren't ours to remove. */
async function hasMachines(directory: string): Promise<boolean> {
  if (!(await isOwnFolder(directory))) return false;
  return stat(machinesFolder(directory)).then(
    () => true,
    () => false,
  );
}

/** Returns `undefined` if the cluster's facts can't be read. */
export async function readCluster(directory: string): Promise<StoredCluster | undefined> {
  try {
    if (!(await isOwnFolder(directory))) return undefined;
    const facts = parseClusterFacts(parseJson(await readOwnText(factsPath(directory))), directory);
    return facts === undefined ? undefined : { directory, facts };
  } catch {
    return undefined;
  }
}

/** Parses the JSON of `cluster.json`; returns `undefined` if it has another shape or belongs to a different creation than its folder. */
export function parseClusterFacts(found: unknown, directory: string): ClusterFacts | undefined {
  const name = creationOfDirectory(directory);
  if (!isMapping(found) || name === undefined || found["schemaVersion"] !== schemaVersion) return undefined;
  if (found["clusterId"] !== name.clusterId || found["creationId"] !== name.creationId) return undefined;
  const required = {
    variant: parseVariant(found["variant"]),
    distribution: parseDistribution(found["distribution"]),
    counts: parseCountsObject(found["counts"]),
    createdBy: plainLine(found["createdBy"]) || undefined,
    nodes: parseNodes(found["nodes"]),
  };
  const optional = {
    webUi: parseWebUi(found["webUi"]),
    createdAt: parseMoment(found["createdAt"])?.toISOString(),
    bootId: plainLine(found["bootId"]) || undefined,
    machines: parseMachineSettings(found["machines"]),
  };
  const isWrong = Object.entries(optional).some(([key, value]) => value === undefined && found[key] !== undefined);
  if (isWrong || !isComplete(required)) return undefined;
  return { schemaVersion, ...name, ...required, ...optional };
}

export function parseMachineSettings(found: unknown): MachineSettings | undefined {
  if (!isMapping(found)) return undefined;
  const { isSandboxed, memoryMegabytes, cpus } = found;
  const accelerator = accelerators.find((each) => each === found["accelerator"]);
  if (accelerator === undefined || typeof isSandboxed !== "boolean") return undefined;
  if (!isCount(memoryMegabytes) || !isCount(cpus)) return undefined;
  return { accelerator, isSandboxed, memoryMegabytes, cpus };
}

const isCount = (found: unknown): found is number =>
  typeof found === "number" && Number.isSafeInteger(found) && found > 0;

function parseNodes(found: unknown): readonly NodeFacts[] | undefined {
  if (!Array.isArray(found)) return undefined;
  const nodes = found.map(parseNode).filter((node) => node !== undefined);
  const names = new Set(nodes.map(nodeReference));
  return nodes.length === found.length && names.size === nodes.length ? nodes : undefined;
}

function parseNode(found: unknown): NodeFacts | undefined {
  if (!isMapping(found)) return undefined;
  const { id } = found;
  const ports: Readonly<Record<string, unknown>> = isMapping(found["ports"]) ? found["ports"] : {};
  const numbers = {
    ssh: parsePort(ports["ssh"]),
    http: parsePort(ports["http"]),
    https: parsePort(ports["https"]),
  };
  const known = {
    role: parseRole(found["role"]),
    index: parseIndex(found["index"]),
    privateAddress: parseIpv4(found["privateAddress"]),
  };
  if (typeof id !== "string" || !/^vm-[0-9a-f]{8}-[0-9]{1,3}$/.test(id)) return undefined;
  return isComplete(known) && isComplete(numbers) ? { id, ...known, ports: numbers } : undefined;
}

const isComplete = <Some extends object>(
  values: Some,
): values is { readonly [Key in keyof Some]: NonNullable<Some[Key]> } & Some =>
  !Object.values(values).includes(undefined);

/** Returns the command, for people, that removes a cluster. */
export const removalCommand = (clusterId: string): string => `cluster-vm destroy --cluster-id ${clusterId}`;
