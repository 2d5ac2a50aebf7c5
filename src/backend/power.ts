import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";

/**
 * Changes whether machines run. They keep their names, addresses, keys and disks. Each call acts on
 * the nodes that are in a state for it, and may be repeated. After an abort, ask the backend for
 * the nodes' states.
 */
export interface Power {
  /** Asks the nodes' systems to shut down, and resolves when they have. Throws `deadline-passed` if one doesn't. */
  shutDown(
    cluster: ClusterRecord,
    nodes: readonly NodeRecord[],
    signal: AbortSignal,
  ): Promise<void>;
  /** Stops them at once, like a power cut. */
  cutPower(
    cluster: ClusterRecord,
    nodes: readonly NodeRecord[],
    signal: AbortSignal,
  ): Promise<void>;
  /** Boots stopped nodes from their disks. Resolves before they accept logins. */
  start(cluster: ClusterRecord, nodes: readonly NodeRecord[], signal: AbortSignal): Promise<void>;
  pause(cluster: ClusterRecord, nodes: readonly NodeRecord[], signal: AbortSignal): Promise<void>;
  resume(cluster: ClusterRecord, nodes: readonly NodeRecord[], signal: AbortSignal): Promise<void>;
  /** Whether the clock of a paused node stands still. */
  readonly stopsClocks: boolean;
  /**
   * Throws `machine-failed` if the console of a node shows, since its last start, that its system
   * will never accept logins.
   */
  readonly assertBoots?: (cluster: ClusterRecord, node: NodeRecord) => Promise<void>;
}
