/** What an installation must know about a backend's nodes before they exist. */
export interface NodeTraits {
  /** A script for the nodes that prints the node's private IPv4 address. */
  readonly ipDetect: string;
  /** The same for the public address; undefined if nodes have none. */
  readonly ipDetectPublic: string | undefined;
  /** Whether nodes synchronize their own clocks; false if they use this machine's clock. */
  readonly nodesKeepTime: boolean;
  /** A sentence that names what has control groups version 1, for users whose nodes have version 2 but need version 1. */
  readonly cgroups1Advice: string;
}
