import type { ClusterRecord, Counts, NodeRecord, Variant, WebScheme } from "../model/cluster-record.ts";
import type { ConnectionPool } from "../ssh/pool.ts";
import type { Clock } from "../system/clock.ts";
import type { Environment } from "../system/environment.ts";
import type { Progress } from "../system/progress.ts";

/** What every backend is given at its making. */
export interface Surroundings {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly progress: Progress;
}

/** Makes, finds and removes machines. It knows nothing of the platform that runs on them. */
export interface Backend<Creation> {
  readonly name: ClusterRecord["backend"];
  /** Which of several places, such as regions, it works in, and the option that picks another; absent where there is only this machine. */
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

  /** For someone who ends the program in the middle of a creation: what may be left, and when or how it goes away. */
  remainsText(clusterId: string): string;

  /** All that provision would make and what that costs, resolved but untouched. */
  plan(request: CreationRequest<Creation>, signal: AbortSignal): Promise<CreationPlan>;

  /**
   * Makes the machines. Calls `onNode` as soon as a node can be logged in to over the pool's connection, and awaits `request.complete` when
   * all can. On failure or abort, also of `complete`, nothing that it made is left, unless `keepOnFailure`: evidence first
   * (`request.onFailure`), then removal. An abort whose reason is a ClusterError is a failure like any other (another part of the creation
   * failed; that reason is thrown); any other abort is an interruption: machines are told to end first, evidence gets what time is left.
   */
  provision(
    request: ProvisionRequest<Creation>,
    onNode: (node: NodeRecord) => void,
    signal: AbortSignal,
  ): Promise<ClusterRecord>;

  /** One (paged) request. `undefined`: no such cluster here. */
  find(clusterId: string, signal: AbortSignal): Promise<ClusterRecord | undefined>;
  /** Where else a cluster with this id is. Asked on the error path only. */
  findElsewhere(clusterId: string, signal: AbortSignal): Promise<Elsewhere>;
  list(signal: AbortSignal): Promise<readonly ClusterRecord[]>;
  /** The clusters of every place; absent where there is but one. */
  readonly listEverywhere?: (signal: AbortSignal) => Promise<EverywhereList>;
  /** Ends all machines of the cluster and removes what belongs to it. Done twice it does no harm. */
  destroy(cluster: ClusterRecord, signal: AbortSignal): Promise<void>;
  /** Console output and the like, of machines that perhaps cannot be logged in to. Best effort: never fails for one node. */
  evidence(cluster: ClusterRecord, signal: AbortSignal): Promise<readonly NamedText[]>;
}

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

/** A backend as the library's users make one: all its own options are given, nothing has been asked yet. */
export interface ClusterBackend<Creation> {
  readonly surroundings: Surroundings;
  readonly distribution: string;
  readonly creation: Creation;
  /** Looks for credentials and the like, and fails as they do. Changes nothing. */
  open(signal: AbortSignal): Promise<Backend<Creation>>;
}

export interface CreationRequest<Creation> {
  readonly clusterId: string;
  readonly variant: Variant;
  readonly distribution: string;
  readonly counts: Counts;
  /** The backend's own options, already checked. */
  readonly creation: Creation;
  /** Whether the platform can isolate with version 1 of the control groups only: of the layout. */
  readonly needsCgroups1: boolean;
  /** Brings what the platform needs into an image of nodes, for backends that build one; undefined: nothing, or not known yet. */
  readonly imagePreparation: ImagePreparation | undefined;
  /** TCP ports that people's machines must reach on the nodes, besides 22: of the layout. */
  readonly openPorts: readonly number[];
  /** Kept with the machines, for those who ask for the web UI's URL; undefined: not known yet. */
  readonly webScheme: WebScheme | undefined;
}

export interface ImagePreparation {
  /** Part of the image's name: lower-case letters. */
  readonly name: string;
  /** A POSIX shell script for the image's system, run as root, without systemd. */
  readonly script: string;
}

export interface ProvisionRequest<Creation> extends CreationRequest<Creation> {
  readonly creationId: string;
  /** This creation's own folder on this machine: exists, private. */
  readonly directory: string;
  /** The public half of the cluster's one SSH key, an `authorized_keys` line. */
  readonly publicKey: string;
  readonly connections: ConnectionPool;
  readonly keepOnFailure: boolean;
  /** Clock time after which provisioning is given up. */
  readonly deadlineMs: number;
  /** Work that belongs to the creation once all machines can be logged in to, such as starting the installation. */
  readonly complete: (cluster: ClusterRecord, signal: AbortSignal) => Promise<void>;
  /** Called before anything is removed after a failure, with what there is of the cluster; bounded by its own signal. */
  readonly onFailure: (cluster: ClusterRecord, signal: AbortSignal) => Promise<void>;
}

/** For `--dry-run` and the note before launch. */
export interface CreationPlan {
  /** Ordered pairs for people, such as ["Image", "ami-… (debian-12-amd64-…)"]. */
  readonly lines: readonly (readonly [label: string, value: string])[];
  /** The same as data, for JSON output. */
  readonly facts: Readonly<Record<string, unknown>>;
}

export interface NamedText {
  /** A file name, such as `master_0.console.txt`. */
  readonly name: string;
  readonly text: string;
}
