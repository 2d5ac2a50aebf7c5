/** The known facts about a cluster and its nodes. Backends create records; everything else reads them. */

export const roles = ["master", "agent", "public_agent"] as const;
export type Role = (typeof roles)[number];

export const variants = ["oss", "enterprise"] as const;
/** `none`: the platform has no variants, for example because it is a folder. */
export type Variant = (typeof variants)[number] | "none";

export type WebScheme = "http" | "https";

/**
 * The masters' web UI in the form in which tags and labels store it. A scheme alone means its usual
 * port and the path `/`. `none`: there is no web UI.
 */
export type WebUi = WebScheme | `${WebScheme}:${number}/${string}` | "none";

export interface WebEndpoint {
  readonly scheme: WebScheme;
  readonly port: number;
  readonly path: string;
}

const webPorts = { http: 80, https: 443 } as const;

export const webUiText = ({ scheme, port, path }: WebEndpoint): WebUi =>
  port === webPorts[scheme] && path === "/" ? scheme : `${scheme}:${port}/${path.slice(1)}`;

/** Returns undefined if there is no web UI. */
export function webEndpointOf(webUi: WebUi): WebEndpoint | undefined {
  const [, scheme, port, path = "/"] = /^(https?)(?::(\d+)(\/.*))?$/.exec(webUi) ?? [];
  if (scheme !== "http" && scheme !== "https") return undefined;
  return { scheme, port: port === undefined ? webPorts[scheme] : Number(port), path };
}

/** Returns the node's own ports for HTTP and HTTPS. They are the usual ones, unless the web UI has another port. */
export function webPortsOf(webUi: WebUi | undefined): Readonly<Record<WebScheme, number>> {
  const endpoint = webUi === undefined ? undefined : webEndpointOf(webUi);
  return endpoint === undefined ? webPorts : { ...webPorts, [endpoint.scheme]: endpoint.port };
}

/**
 * A platform without variants as tags and labels store it: its name, its TCP ports and its version.
 * See `platformText`.
 */
export interface PlatformName {
  readonly name: string;
  /** As of the creation: an upgrade doesn't change it. */
  readonly version: string;
  /** TCP ports that users' machines reach, besides 22; absent: too many for a tag. */
  readonly ports?: readonly number[];
}

export type Counts = Readonly<Record<Role, number>>;

/**
 * `starting`: not up yet. `running`: up. `paused`: frozen, with its memory. `stopped`: off, but can
 * be started again. `ending`: shutting down. `ended`: gone, but still known to the backend.
 */
export type NodeState = "starting" | "running" | "paused" | "stopped" | "ending" | "ended";

export interface NodeRecord {
  /** The backend's own id of the machine, such as an EC2 instance id. */
  readonly id: string;
  readonly role: Role;
  /** Counted per role in launch order; never changes. */
  readonly index: number;
  readonly state: NodeState;
  /** The name that the node was given on the network; absent where this program doesn't choose it. */
  readonly hostname?: string;
  /** The engine's name for the node's container; absent where nodes aren't containers. */
  readonly containerName?: string;
  /** Absent while the machine has none. */
  readonly publicAddress: string | undefined;
  readonly privateAddress: string | undefined;
  /** The address at which this program reaches the node's sshd. `host` is empty while there is no address. */
  readonly ssh: {
    readonly host: string;
    readonly port: number;
    readonly user: string;
    /** Where the address leads nowhere from here: what leads to the same sshd. */
    readonly through?: Passage;
  };
  /** The address at which this machine reaches the node's web server. */
  readonly web: { readonly host: string; readonly httpPort: number; readonly httpsPort: number };
  /** Why the machine ended, if the backend reports it. */
  readonly stateReason?: string;
}

/** A program whose input and output are a connection to a node's sshd. */
export interface Passage {
  /** The name shown to people, such as `Docker`. */
  readonly title: string;
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * `starting`: some machines are not up yet. `running`: all requested machines are up. `incomplete`: some are missing,
 * stopped or paused. `stopped`: all are stopped. `ending`: all are shutting down. These states don't describe the
 * platform on the machines; `wait` finds out whether it is ready.
 */
export type ClusterState = "starting" | "running" | "incomplete" | "stopped" | "ending";

export const isReachable = ({ state, ssh }: NodeRecord): boolean =>
  state === "running" && ssh.host !== "";

export interface ClusterRecord {
  readonly id: string;
  /** A random id from the create that created the cluster. It distinguishes two clusters with the same id. */
  readonly creationId: string;
  readonly backend: "cloud" | "container" | "vm";
  readonly region: string | undefined;
  readonly variant: Variant;
  readonly distribution: string;
  readonly state: ClusterState;
  readonly createdAt: Date | undefined;
  /** When the machines end by themselves; absent if they have no fixed lifetime. */
  readonly expiresAt: Date | undefined;
  /**
   * The maximum cost until the end in US dollars, as shown to users; absent if machines are free or
   * the price is unknown.
   */
  readonly maximumCost?: number | undefined;
  /** According to the platform when the cluster was created; absent if it wasn't known yet. */
  readonly webUi?: WebUi | undefined;
  /**
   * What was installed, in the form in which tags and labels store it; absent if it has variants,
   * or wasn't known yet.
   */
  readonly platform?: string | undefined;
  /** How many nodes were created; absent if that isn't known. */
  readonly requested?: Counts | undefined;
  /** In role order (master, agent, public_agent), then by index. */
  readonly nodes: readonly NodeRecord[];
  /**
   * The folder on this machine with the cluster's key, known hosts and logs. It exists only on
   * machines that created or imported the cluster.
   */
  readonly directory: string;
}

/** The fields that distinguish a cluster from all others, and its folder on this machine. */
export type ClusterName = Pick<ClusterRecord, "id" | "creationId" | "directory">;

/** The order of lists. Clusters of the same id are possible; the oldest comes first. */
export const byIdAndAge = (one: ClusterRecord, other: ClusterRecord): number =>
  one.id.localeCompare(other.id) ||
  (one.createdAt?.getTime() ?? 0) - (other.createdAt?.getTime() ?? 0);

/** Identifies a node within its cluster. */
type NodeName = Pick<NodeRecord, "role" | "index">;

/** `master_0`, `agent_2`, `public_agent_0`. */
export const nodeReference = (node: NodeName): string => `${node.role}_${node.index}`;

/** The name that containers and virtual machines are given on the network. It must not contain an underscore. */
export const nodeHostname = (node: NodeName): string => nodeReference(node).replaceAll("_", "-");

/** The words that name several nodes, wherever a command takes nodes; undefined: nodes of every role. */
export const nodeGroups: Readonly<Record<string, Role | undefined>> = {
  all: undefined,
  masters: "master",
  agents: "agent",
  public_agents: "public_agent",
};

/** Counts the nodes of each role. Ended machines don't count. */
export function countNodes(nodes: readonly Pick<NodeRecord, "role" | "state">[]): Counts {
  const count = (role: Role): number =>
    nodes.filter((node) => node.role === role && node.state !== "ended").length;
  return { master: count("master"), agent: count("agent"), public_agent: count("public_agent") };
}

export function nodeCount(counts: Counts): number {
  return roles.reduce((sum, role) => sum + counts[role], 0);
}

/** The requested number of nodes per role, as one tag or label stores it: `master=1 agent=2 public_agent=1`. */
export function countsText(counts: Counts): string {
  return roles.map((role) => `${role}=${counts[role]}`).join(" ");
}

export function clusterState(
  nodes: readonly NodeRecord[],
  requested: Counts | undefined,
): ClusterState {
  const live = nodes.filter((node) => node.state === "starting" || node.state === "running");
  if (live.length === 0) return "ending";
  if (live.some((node) => node.state === "starting")) return "starting";
  const isComplete = roles.every(
    (role) => live.filter((node) => node.role === role).length >= (requested?.[role] ?? 0),
  );
  return isComplete ? "running" : "incomplete";
}

/**
 * Returns the state of a cluster whose machines exist until they are removed, so that none is ever
 * ending. See `clusterState`.
 */
export function localClusterState(
  nodes: readonly NodeRecord[],
  requested: Counts | undefined,
): ClusterState {
  if (nodes.some((node) => node.state === "starting" || node.state === "running"))
    return clusterState(nodes, requested);
  return nodes.length > 0 && nodes.every((node) => node.state === "stopped")
    ? "stopped"
    : "incomplete";
}

export function byRoleAndIndex(a: NodeName, b: NodeName): number {
  return roles.indexOf(a.role) - roles.indexOf(b.role) || a.index - b.index;
}

export interface NodeTraits {
  /** A script for the nodes that prints the node's private IPv4 address. */
  readonly ipDetect: string;
  /** A script that prints the node's public IPv4 address; undefined if nodes have none. */
  readonly ipDetectPublic: string | undefined;
  /** Whether nodes synchronize their own clocks; false if they use this machine's clock. */
  readonly nodesKeepTime: boolean;
  /**
   * A sentence that names what has control groups version 1, for users whose nodes have version 2
   * but need version 1.
   */
  readonly cgroups1Advice: string;
}
