import type { Instance } from "@aws-sdk/client-ec2";
import { byRoleAndIndex, type ClusterRecord, clusterState, type NodeRecord } from "../../../model/cluster-record.ts";
import { creationDirectory } from "../../../system/files/creation-folder.ts";
import { lifetimeMs } from "../launch/lifetime.ts";
import { maximumCost } from "../launch/prices.ts";
import { type Machine, readMachines } from "./read-machines.ts";

/** Where to read clusters: their records name the region and this machine's folder. */
export interface Place {
  readonly region: string;
  /** The folder of this region's creations. */
  readonly root: string;
}

/** Groups the machines that the API knows into clusters; see clustersOf. */
export function toClusters(instances: readonly Instance[], place: Place): readonly ClusterRecord[] {
  return clustersOf(readMachines(instances).machines, place);
}

/** Groups machines into clusters. A creation whose machines have all ended is no longer a cluster. */
export function clustersOf(machines: readonly Machine[], place: Place): readonly ClusterRecord[] {
  const byCreation = Map.groupBy(machines, ({ clusterId, creationId }) => `${clusterId} ${creationId}`);
  return [...byCreation.values()]
    .filter((members) => members.some((member) => member.state !== "ended"))
    .map((members) => toCluster(members, place))
    .toSorted((a, b) => a.id.localeCompare(b.id) || (a.createdAt?.getTime() ?? 0) - (b.createdAt?.getTime() ?? 0));
}

/**
 * Returns the cluster with this id. For a moment there can be two, if one of them is ending, and anyone who may tag can make an older machine look
 * like another. So a cluster whose key is on this computer comes first, then one whose machines are in its security group, then the oldest, because
 * the later creation yields.
 */
export function pickCluster(
  { machines, clusters }: ClusterReading,
  clusterId: string,
  creationsHere: ReadonlySet<string>,
): ClusterRecord | undefined {
  const named = clusters.filter((cluster) => cluster.id === clusterId);
  const grouped = new Set(machines.filter(({ isInItsGroup }) => isInItsGroup).map(({ creationId }) => creationId));
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
function toCluster(members: readonly Machine[], place: Place): ClusterRecord {
  const [eldest] = members;
  if (eldest === undefined) throw new TypeError("A cluster without machines");
  const { clusterId, creationId, variant, webScheme, launchedAt: createdAt } = eldest;
  const nodes = members.map(toNode).toSorted(byRoleAndIndex);
  const cost = maximumCost(eldest.instanceType, nodes.length);
  return {
    id: clusterId,
    creationId,
    backend: "cloud",
    region: place.region,
    variant,
    distribution: eldest.distribution ?? "unknown",
    state: clusterState(nodes, eldest.counts),
    createdAt,
    expiresAt: eldest.expiresAt ?? (createdAt && new Date(createdAt.getTime() + lifetimeMs)),
    ...(cost !== undefined && { maximumCost: cost }),
    ...(webScheme !== undefined && { webScheme }),
    nodes,
    directory: creationDirectory(place.root, clusterId, creationId),
  };
}

export function toNode(machine: Machine): NodeRecord {
  const { id, role, index, state, publicAddress, privateAddress, stateReason, sshUser } = machine;
  const host = publicAddress ?? "";
  const isOver = state === "ending" || state === "ended";
  return {
    id,
    role,
    index,
    state,
    publicAddress,
    privateAddress,
    ssh: { host, port: 22, user: sshUser },
    web: { host, httpPort: 80, httpsPort: 443 },
    ...(isOver && stateReason !== undefined && { stateReason }),
  };
}
