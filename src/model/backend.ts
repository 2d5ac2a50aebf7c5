import type { Admission } from "./admission.ts";
import type { ClusterName, ClusterRecord } from "./cluster-record.ts";
import type { CopyRequest, Creation, CreationRequest } from "./creation.ts";
import type { NodeTraits } from "./node-traits.ts";
import type { Snapshots } from "./snapshots.ts";

/** Creates, finds and removes machines. It knows nothing about the platform that runs on them. */
export interface Backend<Options> {
  readonly name: ClusterRecord["backend"];
  /** The place it works in, such as a region, and the name of the option that selects another; absent if this machine is the only place. */
  readonly place: { readonly kind: string; readonly name: string; readonly option: string } | undefined;
  readonly nodes: NodeTraits;

  /**
   * Determines everything that a new cluster needs. Creates nothing. Throws `cluster-exists` if the id is taken, except by the remains of a create
   * that was killed on this machine.
   */
  plan(request: CreationRequest<Options>, signal: AbortSignal): Promise<Creation>;

  /**
   * Does the same for a cluster that is made from a snapshot. Also throws `snapshot-not-found`, `snapshot-unusable` and the like. Absent if there are
   * no such clusters.
   */
  readonly planCopy?: (request: CopyRequest, signal: AbortSignal) => Promise<Creation>;

  /** Sends one (paged) request. Returns `undefined` if there is no such cluster here. */
  find(clusterId: string, signal: AbortSignal): Promise<ClusterRecord | undefined>;
  /** Finds the other places that have a cluster with this id. Called only on the error path. */
  findInOtherPlaces(clusterId: string, signal: AbortSignal): Promise<OtherPlaces>;
  list(signal: AbortSignal): Promise<readonly ClusterRecord[]>;
  /** Lists the clusters of every place; absent if there is only one. */
  readonly listEverywhere?: (signal: AbortSignal) => Promise<EverywhereList>;
  /**
   * Ends all machines of the cluster and removes everything that belongs to it, including requests of a killed create that only its folder knows.
   * Also removes its snapshots. Safe to repeat. Throws if anything is left.
   */
  remove(cluster: ClusterName, signal: AbortSignal): Promise<void>;
  /** Console output of the machines, even of those that nobody can log in to. Best effort: never fails because of one node. */
  consoleOutput(cluster: ClusterRecord, signal: AbortSignal): Promise<readonly NamedText[]>;
  /** Absent if clusters can't be saved. */
  readonly snapshots?: Snapshots;
  /** Absent if only this machine can reach the nodes. */
  readonly admission?: Admission;
}

export interface EverywhereList {
  readonly clusters: readonly ClusterRecord[];
  readonly unreachable: readonly UnreachablePlace[];
}

/** Other places, such as regions, that have the cluster or may have it. */
export interface OtherPlaces {
  readonly places: readonly string[];
  readonly unreachable: readonly UnreachablePlace[];
}

/** A place that could not be queried, and why. */
interface UnreachablePlace {
  readonly place: string;
  readonly reason: string;
}

export interface NamedText {
  /** A file name, such as `master_0.console.txt`. */
  readonly name: string;
  readonly text: string;
}
