/** What is known of a cluster and its nodes. Backends make records, everybody else reads them. */

export const roles = ["master", "agent", "public_agent"] as const;
export type Role = (typeof roles)[number];

export const variants = ["oss", "enterprise"] as const;
export type Variant = (typeof variants)[number];

/** How the platform's web servers are spoken to. */
export type WebScheme = "http" | "https";

export type Counts = Readonly<Record<Role, number>>;

/** `starting`: not up yet. `running`: up. `ending`: on its way out. `ended`: gone, still remembered by the backend. */
export type NodeState = "starting" | "running" | "ending" | "ended";

export interface NodeRecord {
  /** The backend's own name of the machine, such as an EC2 instance id. */
  readonly id: string;
  readonly role: Role;
  /** Counted per role in launch order; never changes. */
  readonly index: number;
  readonly state: NodeState;
  /** Absent while the machine has none (yet). */
  readonly publicAddress: string | undefined;
  readonly privateAddress: string | undefined;
  /** Where this program reaches the node's sshd. `host` is empty while there is no address. */
  readonly ssh: { readonly host: string; readonly port: number; readonly user: string };
  /** Where this machine reaches the node's web server. */
  readonly web: { readonly host: string; readonly httpPort: number; readonly httpsPort: number };
  /** Why the machine ended, where the backend says so. */
  readonly stateReason?: string;
}

/**
 * `starting`: some machines are not up yet. `running`: all that were asked for are up. `incomplete`: some are missing.
 * `ending`: all are on their way out. None of these says whether the platform on them is ready: `wait` does.
 */
export type ClusterState = "starting" | "running" | "incomplete" | "ending";

export interface ClusterRecord {
  readonly id: string;
  /** Random, made by the create that made the cluster; tells two clusters with one id apart. */
  readonly creationId: string;
  readonly backend: "cloud" | "container" | "vm";
  readonly region: string | undefined;
  readonly variant: Variant;
  readonly distribution: string;
  readonly state: ClusterState;
  readonly createdAt: Date | undefined;
  /** When the machines end by themselves; absent where they have no fixed lifetime. */
  readonly expiresAt: Date | undefined;
  /** US dollars at most until the end, as shown to people; absent where machines are free or the price is unknown. */
  readonly maximumCost?: number;
  /** As the configuration had it when the cluster was created; absent where that wasn't known yet. */
  readonly webScheme?: WebScheme;
  /** In role order (master, agent, public_agent), then by index. */
  readonly nodes: readonly NodeRecord[];
  /** The folder on this machine with the cluster's key, known hosts and logs. Exists only on the machine that created it. */
  readonly directory: string;
}

/** `master_0`, `agent_2`, `public_agent_0`. */
export const nodeReference = (node: Pick<NodeRecord, "role" | "index">): string => `${node.role}_${node.index}`;
