import { networkName } from "./names.ts";
import {
  byRoleAndIndex,
  type ClusterRecord,
  clusterState,
  type NodeRecord,
  type NodeState,
} from "../../../model/cluster-record.ts";
import { creationDirectory } from "../../../system/files/creation-folder.ts";
import type { NetworkFacts, NodeContainer } from "./read-containers.ts";

/** Nodes accept root's login; a container has no other users of its own. */
const sshUser = "root";

/** Everything of ours that the engine has. */
export interface Inventory {
  readonly containers: readonly NodeContainer[];
  readonly networks: readonly NetworkFacts[];
  /** The ids of creations whose program died before they were complete: nothing will start the rest. */
  readonly abandoned: ReadonlySet<string>;
}

/**
 * Groups containers and networks into clusters. Every cluster has a network. A network alone is a cluster too, because
 * there is something to destroy. `root` is the folder of this machine's creations.
 */
export function toClusters({ containers, networks, abandoned }: Inventory, root: string): readonly ClusterRecord[] {
  const byNetwork = Map.groupBy(containers, networkName);
  return networks
    .map((network) => {
      const { creationId } = network;
      const own = byNetwork.get(networkName(network)) ?? [];
      return toCluster(network, own, { root, isAbandoned: abandoned.has(creationId) });
    })
    .toSorted((a, b) => a.id.localeCompare(b.id) || (a.createdAt?.getTime() ?? 0) - (b.createdAt?.getTime() ?? 0));
}

function toCluster(
  { clusterId, creationId, variant, distribution, counts }: NetworkFacts,
  containers: readonly NodeContainer[],
  { root, isAbandoned }: { readonly root: string; readonly isAbandoned: boolean },
): ClusterRecord {
  const nodes = containers.map((container) => toNode(container, isAbandoned)).toSorted(byRoleAndIndex);
  const isLive = nodes.some((node) => node.state === "starting" || node.state === "running");
  return {
    id: clusterId,
    creationId,
    backend: "container",
    region: undefined,
    variant: variant ?? "oss",
    distribution: distribution ?? "unknown",
    // Stopped containers stay until they are removed, so none of them is ending.
    state: isLive ? clusterState(nodes, counts) : "incomplete",
    createdAt: earliest(containers),
    expiresAt: undefined,
    nodes,
    directory: creationDirectory(root, clusterId, creationId),
  };
}

function toNode(container: NodeContainer, isAbandoned: boolean): NodeRecord {
  const known = nodeState(container);
  const isForsaken = known === "starting" && isAbandoned;
  const state = isForsaken ? "ended" : known;
  return {
    id: shortId(container),
    role: container.role,
    index: container.index,
    state,
    privateAddress: container.address,
    ...wayTo(container),
    ...(state === "ended" && { stateReason: isForsaken ? forsakenText : endText(container) }),
  };
}

const forsakenText = "the container was never started: its create was interrupted";

function wayTo({ address, ports, reach }: NodeContainer): Pick<NodeRecord, "publicAddress" | "ssh" | "web"> {
  if (reach === "direct") {
    const host = address ?? "";
    return {
      publicAddress: address,
      ssh: { host, port: 22, user: sshUser },
      web: { host, httpPort: 80, httpsPort: 443 },
    };
  }
  const port = (number: number): number => ports.get(number) ?? 0;
  const host = port(22) === 0 ? "" : "127.0.0.1";
  return {
    publicAddress: undefined,
    ssh: { host, port: port(22), user: sshUser },
    web: { host, httpPort: port(80), httpsPort: port(443) },
  };
}

function nodeState({ status }: NodeContainer): NodeState {
  switch (status) {
    case "running":
    case "paused":
      return "running";
    case "created":
    case "configured":
    case "initialized":
    case "restarting":
      return "starting";
    case "removing":
    case "stopping":
      return "ending";
    default:
      return "ended";
  }
}

function endText({ exitCode, wasKilledForMemory, error }: NodeContainer): string {
  const why = wasKilledForMemory
    ? " (a process in it was killed because memory ran out)"
    : error === undefined
      ? ""
      : `: ${error}`;
  const killed = exitCode === 137 && why === "" ? " (killed, perhaps because memory ran out)" : "";
  return `the container stopped with status ${exitCode}${why}${killed}`;
}

export const shortId = ({ id }: Pick<NodeContainer, "id">): string => id.slice(0, 12);

function earliest(containers: readonly NodeContainer[]): Date | undefined {
  const times = containers.map(({ createdAt }) => createdAt?.getTime()).filter((time) => time !== undefined);
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}
