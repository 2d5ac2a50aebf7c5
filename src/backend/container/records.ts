import { type ClusterRecord, type NodeRecord, type NodeState, roles, variants } from "../../model/cluster-record.ts";
import { creationDirectory } from "../../system/creation-folder.ts";
import { byRoleAndIndex, clusterState, readCounts } from "../cluster-shape.ts";
import type { Container, Network } from "./describe.ts";
import { type LabelValues, readLabels } from "./labels.ts";

/** Nodes let root in; a container has no other users of its own. */
const sshUser = "root";

/** What of ours the engine has. */
export interface Inventory {
  readonly containers: readonly Container[];
  readonly networks: readonly Network[];
  /** The ids of creations whose program has died in the midst of them: what they had not started yet, nobody will. */
  readonly abandoned: ReadonlySet<string>;
}

/**
 * What containers and networks make up. A network alone is a cluster too, and so is what labels of another version tell little of: there is
 * something to destroy. `root` is the folder of this machine's creations.
 */
export function toClusters({ containers, networks, abandoned }: Inventory, root: string): readonly ClusterRecord[] {
  const labels = [...networks.map((network) => network.labels), ...containers.map(labelsOf)];
  const creations = new Map(labels.map((each) => [`${each.clusterId} ${each.creationId}`, each]));
  return [...creations.values()]
    .map((facts) => {
      const isOwn = (other: LabelValues): boolean =>
        other.clusterId === facts.clusterId && other.creationId === facts.creationId;
      return toCluster(
        facts,
        containers.filter((container) => isOwn(labelsOf(container))),
        { root, isAbandoned: abandoned.has(facts.creationId ?? "") },
      );
    })
    .toSorted((a, b) => a.id.localeCompare(b.id) || (a.createdAt?.getTime() ?? 0) - (b.createdAt?.getTime() ?? 0));
}

function toCluster(
  facts: LabelValues,
  containers: readonly Container[],
  { root, isAbandoned }: { readonly root: string; readonly isAbandoned: boolean },
): ClusterRecord {
  const nodes = containers.flatMap((container) => toNode(container, isAbandoned)).toSorted(byRoleAndIndex);
  const isLive = nodes.some((node) => node.state === "starting" || node.state === "running");
  const id = facts.clusterId ?? "";
  const creationId = facts.creationId ?? "";
  return {
    id,
    creationId,
    backend: "container",
    region: undefined,
    variant: variants.find((variant) => variant === facts.variant) ?? "oss",
    distribution: facts.distribution ?? "unknown",
    // Stopped containers stay until they are removed, so none of them is on its way out.
    state: isLive ? clusterState(nodes, readCounts(facts.counts)) : "incomplete",
    createdAt: earliest(containers),
    expiresAt: undefined,
    nodes,
    directory: creationDirectory(root, id, creationId),
  };
}

/** None where the labels don't say which node it is. */
function toNode(container: Container, isAbandoned: boolean): readonly NodeRecord[] {
  const labels = labelsOf(container);
  const role = roles.find((candidate) => candidate === labels.role);
  if (role === undefined || !/^[0-9]+$/.test(labels.index ?? "")) return [];
  const known = nodeState(container);
  const isForsaken = known === "starting" && isAbandoned;
  const state = isForsaken ? "ended" : known;
  const own = Object.values(container.NetworkSettings.Networks)[0]?.IPAddress ?? "";
  return [
    {
      id: shortId(container),
      role,
      index: Number(labels.index),
      state,
      privateAddress: own === "" ? undefined : own,
      ...wayTo(container, own),
      ...(state === "ended" && { stateReason: isForsaken ? forsakenText : endText(container) }),
    },
  ];
}

const forsakenText = "the container was never started: its create was cut short";

function wayTo(container: Container, own: string): Pick<NodeRecord, "publicAddress" | "ssh" | "web"> {
  if (labelsOf(container).reach !== "published") {
    return {
      publicAddress: own === "" ? undefined : own,
      ssh: { host: own, port: 22, user: sshUser },
      web: { host: own, httpPort: 80, httpsPort: 443 },
    };
  }
  const port = (number: number): number =>
    Number(container.NetworkSettings.Ports?.[`${number}/tcp`]?.[0]?.HostPort ?? 0);
  const host = port(22) === 0 ? "" : "127.0.0.1";
  return {
    publicAddress: undefined,
    ssh: { host, port: port(22), user: sshUser },
    web: { host, httpPort: port(80), httpsPort: port(443) },
  };
}

function nodeState({ State }: Container): NodeState {
  switch (State.Status) {
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

function endText({ State }: Container): string {
  const why =
    State.OOMKilled === true
      ? " (something in it was killed for want of memory)"
      : State.Error
        ? `: ${State.Error}`
        : "";
  const killed = State.ExitCode === 137 && why === "" ? " (killed, perhaps for want of memory)" : "";
  return `the container stopped with status ${State.ExitCode}${why}${killed}`;
}

export const shortId = ({ Id }: Pick<Container, "Id">): string => Id.slice(0, 12);

export const labelsOf = (container: Container): LabelValues => readLabels(container.Config.Labels);

function earliest(containers: readonly Container[]): Date | undefined {
  const times = containers.map(({ Created }) => Date.parse(Created)).filter((time) => !Number.isNaN(time));
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}
