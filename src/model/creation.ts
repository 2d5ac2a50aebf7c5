import type { ClusterRecord, Counts, NodeRecord, Variant, WebScheme } from "./cluster-record.ts";

/** The cluster to be made. */
export interface CreationRequest<Options> {
  readonly clusterId: string;
  readonly variant: Variant;
  readonly distribution: string;
  readonly counts: Counts;
  /** The backend's own options, already checked. */
  readonly options: Options;
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

/**
 * One cluster in the making. It knows what it has asked for; nobody else does. Its owner calls `claim`, then `launch` and at the same time `look`,
 * and if anything fails, `recover`, or `stop` and `remove`. Every request that makes something is on the disk before it is sent.
 */
export interface Creation {
  readonly summary: CreationSummary;
  /** Milliseconds between two looks, at most. */
  readonly lookEveryMs: number;
  /** Milliseconds from the moment a machine has an address until it must have let us in. */
  readonly loginLimitMs: number;

  /** Takes the id, and makes what the machines need. Throws `cluster-exists` where somebody else has taken it since. */
  claim(folder: CreationFolder, signal: AbortSignal): Promise<void>;
  /** Asks for every machine. `publicKey`, an `authorized_keys` line, opens all of them. */
  launch(publicKey: string, signal: AbortSignal): Promise<void>;
  /** What there is now. Throws `machine-failed` and the like when it can't become the cluster any more. */
  look(signal: AbortSignal): Promise<ClusterRecord>;
  /** What there is now, whatever became of it: for logs. */
  describe(signal: AbortSignal): Promise<ClusterRecord>;
  /** The public half of the host key that the node boots with. */
  firstHostKeyOf(node: NodeName): string;
  /** Resolves once the node's first boot has ended. */
  finishBoot(node: NodeRecord, shell: NodeShell, signal: AbortSignal): Promise<void>;
  /** Why a node may never have answered, and what to do about it. `undefined`: nothing is known. */
  whyUnreachable(signal: AbortSignal): Promise<{ readonly reason: string; readonly hint: string } | undefined>;

  /**
   * After a failure of the launch or of a machine: whether the machines can be launched once more, in another way; then `launch` is called again.
   * May throw the failure with better advice. Absent: no.
   */
  readonly recover?: (failure: unknown, signal: AbortSignal) => Promise<boolean>;

  /** Tells all machines to end. Safe to repeat. */
  stop(signal: AbortSignal): Promise<void>;
  /** Removes everything, after `stop`. Resolves with a sentence about what is left, if anything. Safe to repeat. */
  remove(signal: AbortSignal): Promise<string | undefined>;
  /** For those who asked to keep the machines of a failed creation: what there is, and how it goes away. */
  describeKept(): string;
  /** For someone who gives up now: what may be left, and how it goes away. `undefined`: nothing has been asked for yet. */
  describeRemains(): string | undefined;
}

/** Which node of its cluster one is; it has one even before its machine exists. */
export type NodeName = Pick<NodeRecord, "role" | "index">;

export interface CreationFolder {
  readonly creationId: string;
  /** On this machine, of this creation alone. Exists; readable by this user only. */
  readonly directory: string;
}

/** What a backend needs of the open way into a node. */
export interface NodeShell {
  /** Every exit status resolves; a lost connection, an aborted signal and a passed limit reject. */
  run(
    command: {
      readonly argv: readonly string[];
      /** As root. */
      readonly sudo?: boolean;
      /** Milliseconds. */
      readonly limitMs?: number;
      /** What it does, for the message that it took too long. */
      readonly task?: string;
    },
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }>;
}

/** For `--dry-run`, and for `-v` before the launch. */
export interface CreationSummary {
  /** Ordered pairs for people, such as ["Image", "ami-… (debian-12-amd64-…)"]. */
  readonly lines: readonly (readonly [label: string, value: string])[];
  /** The same as data, for JSON output. */
  readonly facts: Readonly<Record<string, unknown>>;
}
