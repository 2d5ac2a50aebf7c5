import type { Instance } from "@aws-sdk/client-ec2";
import { type ClusterRecord, type NodeRecord, type NodeState, roles, variants } from "../../model/cluster-record.ts";
import { creationDirectory } from "../../system/creation-folder.ts";
import { byRoleAndIndex, clusterState, readCounts } from "../cluster-shape.ts";
import { lifetimeMs } from "./lifetime.ts";
import { maximumCost } from "./prices.ts";
import { readTags, type TagValues } from "./tags.ts";

/** Where clusters are read for: records name the region and this machine's folder. */
export interface Place {
  readonly region: string;
  /** The folder of this region's creations. */
  readonly root: string;
}

/** What the machines that the API knows make up. A creation whose machines have all ended is no cluster any more. */
export function toClusters(instances: readonly Instance[], place: Place): readonly ClusterRecord[] {
  const byCreation = Map.groupBy(instances.filter(isOurs), (instance) => readTags(instance.Tags).creationId ?? "");
  return [...byCreation.values()]
    .filter((members) => members.some((member) => nodeState(member) !== "ended"))
    .map((members) => toCluster(members, place))
    .toSorted((a, b) => a.id.localeCompare(b.id) || (a.createdAt?.getTime() ?? 0) - (b.createdAt?.getTime() ?? 0));
}

/**
 * The cluster with this id. There can be two for a moment, one of which is on its way out; otherwise the elder is the one, because the later
 * creation yields.
 */
export function pickCluster(clusters: readonly ClusterRecord[], clusterId: string): ClusterRecord | undefined {
  const named = clusters.filter((cluster) => cluster.id === clusterId);
  return named.find((cluster) => cluster.state !== "ending") ?? named.at(-1);
}

/** A stopped machine counts as ending: ours are never started again. */
export function nodeState(instance: Instance): NodeState {
  switch (instance.State?.Name) {
    case "running":
      return "running";
    case "stopping":
    case "stopped":
    case "shutting-down":
      return "ending";
    case "terminated":
      return "ended";
    case "pending":
    case undefined:
    default:
      return "starting";
  }
}

/** Whether the tags say all that a node's record needs: anybody can put tags on machines. */
function isOurs(instance: Instance): boolean {
  const tags = readTags(instance.Tags);
  return (
    instance.InstanceId !== undefined &&
    tags.clusterId !== undefined &&
    tags.creationId !== undefined &&
    roles.some((role) => role === tags.role) &&
    variants.some((variant) => variant === tags.variant)
  );
}

function toCluster(members: readonly Instance[], place: Place): ClusterRecord {
  const tags = readTags(members[0]?.Tags);
  const nodes = members.map(toNode).toSorted(byRoleAndIndex);
  const createdAt = earliest(members.map((member) => member.LaunchTime));
  const cost = maximumCost(members[0]?.InstanceType ?? "", nodes.length);
  const id = tags.clusterId ?? "";
  const creationId = tags.creationId ?? "";
  return {
    id,
    creationId,
    backend: "cloud",
    region: place.region,
    variant: variants.find((variant) => variant === tags.variant) ?? "oss",
    distribution: tags.distribution ?? "unknown",
    state: clusterState(nodes, readCounts(tags.counts)),
    createdAt,
    expiresAt: readExpiry(tags) ?? (createdAt && new Date(createdAt.getTime() + lifetimeMs)),
    ...(cost !== undefined && { maximumCost: cost }),
    ...((tags.webScheme === "http" || tags.webScheme === "https") && { webScheme: tags.webScheme }),
    nodes,
    directory: creationDirectory(place.root, id, creationId),
  };
}

/** Reads a machine that we launched: what it is in the cluster stands in its tags. */
export function toNode(instance: Instance): NodeRecord {
  const tags = readTags(instance.Tags);
  const host = instance.PublicIpAddress ?? "";
  const reason = instance.StateReason?.Message ?? instance.StateTransitionReason;
  const state = nodeState(instance);
  const isOver = state === "ending" || state === "ended";
  return {
    id: instance.InstanceId ?? "",
    role: roles.find((role) => role === tags.role) ?? "agent",
    index: Number(tags.indexBase ?? 0) + (instance.AmiLaunchIndex ?? 0),
    state,
    publicAddress: instance.PublicIpAddress,
    privateAddress: instance.PrivateIpAddress,
    ssh: { host, port: 22, user: tags.sshUser ?? "" },
    web: { host, httpPort: 80, httpsPort: 443 },
    ...(isOver && reason !== undefined && reason !== "" && { stateReason: reason }),
  };
}

/** The moment in the tag; `undefined` where it holds none. */
export function readExpiry(tags: TagValues): Date | undefined {
  const time = Date.parse(tags.expiresAt ?? "");
  return Number.isNaN(time) ? undefined : new Date(time);
}

function earliest(times: readonly (Date | undefined)[]): Date | undefined {
  return times.filter((time) => time !== undefined).toSorted((a, b) => a.getTime() - b.getTime())[0];
}
