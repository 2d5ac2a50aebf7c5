import type { Instance } from "@aws-sdk/client-ec2";
import { messageOf } from "../../errors.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  byIdAndAge,
  byRoleAndIndex,
  clusterState,
  webPortsOf,
} from "../../model/cluster-record.ts";
import { parseRegion } from "../../model/parse-values.ts";
import { creationDirectory } from "../../store/creation-folder.ts";
import type { AllScopesList, NamedText, OtherScopes } from "../contract.ts";
import { consoleOutputs } from "../shared/node-scripts.ts";
import { isFailure } from "./api/api-errors.ts";
import { type CloudApi, describeInstances } from "./api/api.ts";
import type { OpenRegion } from "./api/open-api.ts";
import { lifetimeMs, maximumCost } from "./lifetime.ts";
import { type Machine, readMachines } from "./read-machines.ts";

/** A region, and the folder of its creations on this machine. */
export interface RegionFolder {
  readonly region: string;
  readonly root: string;
}

/** Groups the machines that the API knows into clusters; see clustersOf. */
export function toClusters(
  instances: readonly Instance[],
  folder: RegionFolder,
): readonly ClusterRecord[] {
  return clustersOf(readMachines(instances).machines, folder);
}

/** Groups machines into clusters. A creation whose machines have all ended is no longer a cluster. */
export function clustersOf(
  machines: readonly Machine[],
  folder: RegionFolder,
): readonly ClusterRecord[] {
  const byCreation = Map.groupBy(
    machines,
    ({ clusterId, creationId }) => `${clusterId} ${creationId}`,
  );
  return [...byCreation.values()]
    .filter((members) => members.some((member) => member.state !== "ended"))
    .map((members) => toCluster(members, folder))
    .toSorted(byIdAndAge);
}

/**
 * Returns the cluster with this id. There can be two if one is ending, or if somebody has copied
 * tags. A cluster whose key is on this computer comes first, then one whose machines are in its
 * security group, then the oldest, because the later creation yields.
 */
export function pickCluster(
  { machines, clusters }: ClusterReading,
  clusterId: string,
  creationsHere: ReadonlySet<string>,
): ClusterRecord | undefined {
  const named = clusters.filter((cluster) => cluster.id === clusterId);
  const grouped = new Set(
    machines.filter(({ isInItsGroup }) => isInItsGroup).map(({ creationId }) => creationId),
  );
  const living = named.filter(({ state }) => state !== "ending");
  return (
    living.find(({ creationId }) => creationsHere.has(creationId)) ??
    living.find(({ creationId }) => grouped.has(creationId)) ??
    living[0] ??
    named.at(-1)
  );
}

/** The region's clusters, and the machines of which they consist. */
export interface ClusterReading {
  readonly machines: readonly Machine[];
  readonly clusters: readonly ClusterRecord[];
}

/** The oldest machine speaks for the cluster. */
function toCluster(members: readonly Machine[], folder: RegionFolder): ClusterRecord {
  const [eldest] = members;
  if (eldest === undefined) throw new TypeError("A cluster without machines");
  const { clusterId, creationId, variant, webUi, platform, launchedAt: createdAt } = eldest;
  const nodes = members.map(toNode).toSorted(byRoleAndIndex);
  const cost = maximumCost(eldest.instanceType, nodes.length);
  return {
    id: clusterId,
    creationId,
    backend: "cloud",
    region: folder.region,
    variant,
    distribution: eldest.distribution ?? "unknown",
    state: clusterState(nodes, eldest.counts),
    requested: eldest.counts,
    createdAt,
    expiresAt: eldest.expiresAt ?? (createdAt && new Date(createdAt.getTime() + lifetimeMs)),
    maximumCost: cost,
    webUi,
    platform,
    nodes,
    directory: creationDirectory(folder.root, clusterId, creationId),
  };
}

export function toNode(machine: Machine): NodeRecord {
  const { id, role, index, state, publicAddress, privateAddress, stateReason, sshUser } = machine;
  const host = publicAddress ?? "";
  const ports = webPortsOf(machine.webUi);
  const isOver = state === "ending" || state === "ended";
  return {
    id,
    role,
    index,
    state,
    publicAddress,
    privateAddress,
    ssh: { host, port: 22, user: sshUser },
    web: { host, httpPort: ports.http, httpsPort: ports.https },
    ...(isOver && stateReason !== undefined && { stateReason }),
  };
}

const limitMs = 20_000;

/**
 * Lists the clusters of all enabled regions concurrently. A region that doesn't answer is named,
 * never left out silently.
 */
export async function listAllRegions(
  open: OpenRegion,
  here: string,
  read: (region: string, instances: readonly Instance[]) => Promise<readonly ClusterRecord[]>,
  signal: AbortSignal,
): Promise<AllScopesList> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
  const regions = (await enabledRegions(open(here), bounded)).toSorted();
  const clusters: (readonly ClusterRecord[])[] = [];
  const unreachable: { scope: string; reason: string }[] = [];
  await Promise.all(
    regions.map(async (region, index) => {
      try {
        clusters[index] = await read(region, await describeInstances(open(region), "all", bounded));
      } catch (error) {
        unreachable.push({ scope: region, reason: messageOf(error) });
      }
    }),
  );
  signal.throwIfAborted();
  return { clusters: clusters.flat(), unreachable };
}

const otherRegionsLimitMs = 8_000;

/**
 * Finds other enabled regions that have a cluster with this id. A region that doesn't answer in
 * time may have one, and is named.
 */
export async function findInOtherRegions(
  open: OpenRegion,
  here: string,
  clusterId: string,
  signal: AbortSignal,
): Promise<OtherScopes> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(otherRegionsLimitMs)]);
  const others = (await enabledRegions(open(here), bounded).catch(() => [])).filter(
    (region) => region !== here,
  );
  const asked = await Promise.all(
    others.toSorted().map(async (scope) => {
      try {
        return { scope, isThere: await hasCluster(open(scope), clusterId, bounded) };
      } catch (error) {
        return { scope, reason: messageOf(error) };
      }
    }),
  );
  signal.throwIfAborted();
  return {
    scopes: asked.flatMap(({ scope, isThere }) => (isThere === true ? [scope] : [])),
    unreachable: asked.flatMap(({ scope, reason }) =>
      reason === undefined ? [] : [{ scope, reason }],
    ),
  };
}

export async function enabledRegions(
  api: CloudApi,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const answer = await api.call("DescribeRegions", {}, signal);
  return (answer.Regions ?? [])
    .map((region) => parseRegion(region.RegionName))
    .filter((name) => name !== undefined);
}

async function hasCluster(api: CloudApi, clusterId: string, signal: AbortSignal): Promise<boolean> {
  const instances = await describeInstances(api, { clusterId }, signal);
  return readMachines(instances).machines.some((machine) => machine.state !== "ended");
}

/**
 * The API has no request for several machines, and it throttles clients that send more than this
 * many requests in a row.
 */
const mostMachines = 100;

export async function clusterConsoleOutput(
  api: CloudApi,
  cluster: ClusterRecord,
  signal: AbortSignal,
): Promise<readonly NamedText[]> {
  const troubledFirst = cluster.nodes.toSorted(
    (a, b) => Number(isRunning(a)) - Number(isRunning(b)),
  );
  return consoleOutputs(
    troubledFirst.slice(0, mostMachines),
    async (node) => consoleOutput(api, node.id, signal),
    signal,
  );
}

function isRunning(node: NodeRecord): boolean {
  return node.state === "running";
}

async function consoleOutput(api: CloudApi, id: string, signal: AbortSignal): Promise<string> {
  try {
    return await ask(api, { InstanceId: id, Latest: true }, signal);
  } catch (error) {
    // Older machine types can only return what they buffered earlier.
    if (!isFailure(error, "not-for-this-type")) throw error;
    return await ask(api, { InstanceId: id }, signal);
  }
}

async function ask(
  api: CloudApi,
  request: { readonly InstanceId: string; readonly Latest?: true },
  signal: AbortSignal,
): Promise<string> {
  const answer = await api.call("GetConsoleOutput", request, signal);
  return Buffer.from(answer.Output ?? "", "base64").toString("utf8");
}
