import type { ClusterRecord } from "./cluster-record.ts";
import type { Creation, CreationRequest } from "./creation.ts";

/** Makes, finds and removes machines. It knows nothing of the platform that runs on them. */
export interface Backend<Options> {
  readonly name: ClusterRecord["backend"];
  /** Which of several places, such as regions, it works in, and the name of the option that picks another; absent where there is only this machine. */
  readonly place: { readonly kind: string; readonly name: string; readonly option: string } | undefined;
  /**
   * A script for the nodes that prints the node's private IPv4 address.
   */
  readonly ipDetect: string;
  /** Same, for the public address; absent where nodes have none. */
  readonly ipDetectPublic: string | undefined;
  /** Whether nodes keep the time by themselves: not those that have the clock of this machine. */
  readonly nodesKeepTime: boolean;
  /** A sentence that names what has version 1 of the control groups, for anyone whose nodes turn out to have version 2 and need 1. */
  readonly cgroups1Advice: string;

  /**
   * Finds out all that a new cluster needs. Creates nothing. Throws `cluster-exists` where the id is taken, unless by what a create that was
   * killed on this machine has left.
   */
  plan(request: CreationRequest<Options>, signal: AbortSignal): Promise<Creation>;

  /** One (paged) request. `undefined`: no such cluster here. */
  find(clusterId: string, signal: AbortSignal): Promise<ClusterRecord | undefined>;
  /** Where else a cluster with this id is. Asked on the error path only. */
  findElsewhere(clusterId: string, signal: AbortSignal): Promise<Elsewhere>;
  list(signal: AbortSignal): Promise<readonly ClusterRecord[]>;
  /** The clusters of every place; absent where there is but one. */
  readonly listEverywhere?: (signal: AbortSignal) => Promise<EverywhereList>;
  /**
   * Ends all machines of the cluster and removes what belongs to it, including requests of a killed create that only its folder knows. Safe to
   * repeat. Throws where something is left.
   */
  remove(cluster: ClusterName, signal: AbortSignal): Promise<void>;
  /** Console output of the machines, even of those that nobody can log in to. Best effort: never fails for one node. */
  consoleOutput(cluster: ClusterRecord, signal: AbortSignal): Promise<readonly NamedText[]>;
}

/** What tells a cluster from all others, and its folder on this machine. */
export type ClusterName = Pick<ClusterRecord, "id" | "creationId" | "directory">;

export interface EverywhereList {
  readonly clusters: readonly ClusterRecord[];
  readonly silent: readonly SilentPlace[];
}

/** Other places, such as regions, that have a cluster, and those that may have it. */
export interface Elsewhere {
  readonly places: readonly string[];
  readonly silent: readonly SilentPlace[];
}

/** One that could not be asked, and why. */
interface SilentPlace {
  readonly place: string;
  readonly reason: string;
}

export interface NamedText {
  /** A file name, such as `master_0.console.txt`. */
  readonly name: string;
  readonly text: string;
}
