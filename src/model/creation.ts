import type { ClusterRecord, Counts, NodeRecord, Variant, WebScheme } from "./cluster-record.ts";

/** The cluster to create. */
export interface CreationRequest<Options> {
  readonly clusterId: string;
  readonly variant: Variant;
  readonly distribution: string;
  readonly counts: Counts;
  /** The backend's own options, already checked. */
  readonly options: Options;
  /** Whether the platform can only isolate with control groups version 1; taken from the layout. */
  readonly needsCgroups1: boolean;
  /** Installs what the platform needs into a node image, for backends that build one; undefined: nothing, or not known yet. */
  readonly imagePreparation: ImagePreparation | undefined;
  /** TCP ports, besides 22, that users' machines must reach on the nodes; taken from the layout. */
  readonly openPorts: readonly number[];
  /** Stored with the machines, for callers that need the web UI's URL; undefined: not known yet. */
  readonly webScheme: WebScheme | undefined;
}

/** The cluster to create from a snapshot: it has the same nodes, software and data, and continues where the snapshot was made. */
export interface CopyRequest {
  readonly clusterId: string;
  /** The cluster that has the snapshot. */
  readonly source: ClusterRecord;
  readonly snapshot: string;
}

export interface ImagePreparation {
  /** Part of the image's name, in lower-case letters. */
  readonly name: string;
  /** A POSIX shell script for the image's system. It runs as root, without systemd. */
  readonly script: string;
}

/**
 * A cluster being created. Only this object knows which machines it has requested. Its owner calls `claim`, then `launch` and `look` concurrently,
 * and if anything fails, `recover`, or `stop` and `remove`. Every request that creates something is on disk before it is sent.
 */
export interface Creation {
  readonly summary: CreationSummary;
  readonly nodeCount: number;
  /** The longest pause between two calls of `look`, in milliseconds. */
  readonly lookEveryMs: number;
  /** Milliseconds from when a machine has an address until a login must have succeeded. */
  readonly loginLimitMs: number;
  /** The longest pause between two attempts to log in, in milliseconds. */
  readonly loginEveryMs: number;

  /** Claims the id, and creates what the machines need. Throws `cluster-exists` if somebody else has claimed the id since. */
  claim(folder: CreationFolder, signal: AbortSignal): Promise<void>;
  /** Requests every machine. `publicKey`, an `authorized_keys` line, grants access to all of them. */
  launch(publicKey: string, signal: AbortSignal): Promise<void>;
  /** The current state. Throws `machine-failed` and similar errors if it can no longer become the cluster. */
  look(signal: AbortSignal): Promise<ClusterRecord>;
  /** The current state, whatever happened to the cluster: for logs. */
  describe(signal: AbortSignal): Promise<ClusterRecord>;
  /** The public half of the host key with which the node boots. */
  firstHostKeyOf(node: NodeName): string;
  /** Whether only this process and the node itself can know the private half. If not, the node gets another host key at its first login. */
  readonly areFirstHostKeysPrivate: boolean;
  /** Resolves once the node's first boot has finished. */
  finishBoot(node: NodeRecord, shell: NodeShell, signal: AbortSignal): Promise<void>;
  /** Why a node may never have answered, and how to fix it. `undefined`: nothing is known. */
  whyUnreachable(signal: AbortSignal): Promise<{ readonly reason: string; readonly hint: string } | undefined>;

  /**
   * Called after a failure of the launch or of a machine. Returns whether the machines can be launched again in another way; if so, `launch` is
   * called again. May throw the failure with better advice. If absent, the answer is no.
   */
  readonly recover?: (failure: unknown, signal: AbortSignal) => Promise<boolean>;

  /** Ends all machines. Safe to repeat. */
  stop(signal: AbortSignal): Promise<void>;
  /** Removes everything, after `stop`. Resolves with a sentence about what is left, if anything. Safe to repeat. */
  remove(signal: AbortSignal): Promise<string | undefined>;
  /** For users who asked to keep the machines of a failed creation: describes what exists, and how to remove it. */
  describeKept(): string;
  /** For a user who gives up now: describes what may be left, and how to remove it. `undefined`: nothing has been requested yet. */
  describeRemains(): string | undefined;
}

/** Identifies a node within its cluster, even before its machine exists. */
export type NodeName = Pick<NodeRecord, "role" | "index">;

export interface CreationFolder {
  readonly creationId: string;
  /** A folder on this machine for this creation alone. It exists, and only this user can read it. */
  readonly directory: string;
}

/** The part of an open connection to a node that a backend needs. */
export interface NodeShell {
  /** Resolves for every exit status. Rejects if the connection is lost, the signal is aborted or the limit has passed. */
  run(
    command: {
      readonly argv: readonly string[];
      /** Whether to run it as root. */
      readonly sudo?: boolean;
      /** Milliseconds. */
      readonly limitMs?: number;
      /** A description of the command, for the message that it took too long. */
      readonly task?: string;
    },
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }>;
}

/** For `--dry-run`, and for `-v` before the launch. */
export interface CreationSummary {
  /** Ordered pairs for people, such as ["Image", "ami-… (debian-12-amd64-…)"]. */
  readonly lines: readonly (readonly [label: string, value: string])[];
  /** The same facts as data, for JSON output. */
  readonly facts: Readonly<Record<string, unknown>>;
}
