/**
 * The contract between the backends, which create, find and remove machines, and everything that uses them. A backend implements `BackendKind`,
 * `Backend` and `Creation`; its machines are either on this computer (`local`) or in a `cloud`. It knows nothing about the platform that runs on its machines.
 */
import type { Check } from "../model/check.ts";
import type {
  ClusterName,
  ClusterRecord,
  Counts,
  NodeRecord,
  NodeTraits,
  Variant,
  WebUi,
} from "../model/cluster-record.ts";
import type {
  BackendOption,
  OptionSchema,
  ScopeValues,
  SchemaValues,
} from "../model/option-schema.ts";
import type {
  ClusterFileReference,
  SnapshotFile,
  SnapshotRecord,
  TemplateRecord,
} from "../model/snapshot.ts";
import type { Checked } from "../model/checked.ts";
import type { Admission } from "./admission.ts";
import type { Power } from "./power.ts";
import type { Work } from "../system/runtime.ts";

/**
 * The declaration of a backend, from which its program, the commands and the library are derived. It loads nothing heavy, because every program reads
 * it at its start.
 */
export type BackendKind<Schema extends BackendSchema = BackendSchema, Options = unknown> =
  | LocalKind<Schema, Options>
  | CloudKind<Schema, Options>;

export interface LocalKind<
  Schema extends BackendSchema = BackendSchema,
  Options = unknown,
> extends CommonKind<Schema, Options> {
  readonly local: LocalTexts;
  readonly open: Open<Schema, Backend<Options> & { readonly local: LocalPart }>;
}

export interface CloudKind<
  Schema extends BackendSchema = BackendSchema,
  Options = unknown,
> extends CommonKind<Schema, Options> {
  readonly local?: undefined;
  readonly cloud: CloudTexts;
  readonly open: Open<Schema, Backend<Options> & { readonly cloud: CloudPart }>;
}

/** Sends no request yet, but looks for credentials. */
type Open<Schema extends BackendSchema, Opened> = (
  work: Work,
  scope: ScopeValues<Schema>,
) => Promise<Opened>;

interface CommonKind<Schema extends BackendSchema, Options> {
  readonly name: ClusterRecord["backend"];
  readonly summary: string;
  readonly options: Schema;
  /**
   * Checks several options together, and files of this machine, and returns the options in the form that `plan` needs. What is absent, such as a
   * value that was invalid by itself, counts as its default.
   */
  parse(given: Partial<SchemaValues<Schema>>): Promise<Checked<Options>>;
  /** The pattern of the machines' ids, for `--node`. */
  readonly machineId: RegExp;
  readonly doctor: Doctor<Schema>;
}

interface BackendSchema extends OptionSchema {
  readonly linuxDistribution: BackendOption<string> & {
    readonly default: string;
    /** Why SELinux can't be set to enforcing on nodes of this distribution; undefined if it can. */
    readonly selinuxProblem: (distribution: string) => string | undefined;
  };
}

interface Doctor<Schema extends BackendSchema> {
  /** The object of "Check … for common problems": "this machine and …". */
  readonly subject: string;
  /** In display order. Requests that the checks share end with the signal. */
  checks(work: Work, scope: ScopeValues<Schema>): Promise<readonly Check[]>;
}

/** The help for what only backends of machines on this computer can do. Their clusters last until somebody ends them. */
interface LocalTexts {
  /** Describes the contents of a snapshot. */
  readonly snapshots: string;
  /** How to create a cluster from a snapshot. */
  readonly copies: string;
  /** Describes the contents of a file. */
  readonly files: string;
  /** Absent if machines have no templates; `templates` is missing then too. */
  readonly templates?: string;
  /** Describes the effects of stopping and pausing. */
  readonly power: string;
  /** Describes the lifetime that users may choose. */
  readonly lifetimes: string;
}

/** The help for what only backends in a cloud can do. Their clusters end by themselves, and cost money until then. */
interface CloudTexts {
  readonly admission: string;
  readonly allScopes: string;
}

/** Types a backend by its own declarations. */
export const defineBackend = <const Schema extends BackendSchema, Options>(
  kind: BackendKind<Schema, Options>,
): BackendKind<Schema, Options> => kind;

/** Clusters of one kind of machines, in one scope. */
export interface Backend<Options> {
  readonly name: ClusterRecord["backend"];
  /** Absent if the backend has only one scope, this machine. */
  readonly scope?: BackendScope;
  readonly nodes: NodeTraits;

  /**
   * Determines everything that a new cluster needs. Creates nothing. Throws `cluster-exists` if the id is taken, except by the remains of a create
   * that was killed on this machine.
   */
  plan(request: CreationRequest<Options>, signal: AbortSignal): Promise<Creation>;

  /** Sends one (paged) request. Returns `undefined` if there is no such cluster here. */
  find(clusterId: string, signal: AbortSignal): Promise<ClusterRecord | undefined>;
  list(signal: AbortSignal): Promise<readonly ClusterRecord[]>;
  /**
   * Ends all machines of the cluster and removes everything that belongs to it, including requests of a killed create that only its folder knows.
   * Also removes its snapshots. Safe to repeat. Throws if anything is left.
   */
  remove(cluster: ClusterName, signal: AbortSignal): Promise<void>;
  /** Console output of the machines, even of those that nobody can log in to. Best effort: never fails because of one node. */
  consoleOutput(cluster: ClusterRecord, signal: AbortSignal): Promise<readonly NamedText[]>;

  /** Present if the machines are on this computer, and only it can reach them. */
  readonly local?: LocalPart;
  /** Present if the machines are in a cloud, in regions that exports name. */
  readonly cloud?: CloudPart;
}

/** What can be done with machines on this computer. */
export interface LocalPart {
  readonly snapshots: Snapshots;
  /** Machines that were booted once, for others to be copied from. */
  readonly templates?: Templates;
  readonly power: Power;
  /** Removes and reports what expired clusters have left; `find` and `list` ignore these. The next call retries failures. */
  removeExpired(signal: AbortSignal): Promise<void>;
}

/** What can be done with machines in a cloud. */
export interface CloudPart {
  /** Lets other computers reach the nodes. */
  readonly admission: Admission;
  /** Lists the clusters of all regions. */
  listAll(signal: AbortSignal): Promise<AllScopesList>;
}

/** A region or an engine. None knows anything about the clusters of another. */
export interface BackendScope {
  /** Such as "region". */
  readonly kind: string;
  readonly name: string;
  /** The name of the option that selects another. */
  readonly option: string;
  /** Finds the other scopes that have a cluster with this id. Called only on the error path. */
  findElsewhere(clusterId: string, signal: AbortSignal): Promise<OtherScopes>;
}

export interface AllScopesList {
  readonly clusters: readonly ClusterRecord[];
  readonly unreachable: readonly UnreachableScope[];
}

/** Other scopes that have the cluster, or may have it. */
export interface OtherScopes {
  readonly scopes: readonly string[];
  readonly unreachable: readonly UnreachableScope[];
  /** Sentences about where else such a cluster was made. */
  readonly notes?: readonly string[];
}

/** A scope that could not be queried, and why. */
interface UnreachableScope {
  readonly scope: string;
  readonly reason: string;
}

export interface NamedText {
  /** A file name, such as `master_0.console.txt`. */
  readonly name: string;
  readonly text: string;
}

export interface CreationRequest<Options> {
  readonly clusterId: string;
  readonly variant: Variant;
  readonly distribution: string;
  readonly counts: Counts;
  /** The backend's own options, already checked. */
  readonly options: Options;
  /** Whether the platform can only isolate with control groups version 1; taken from the layout. */
  readonly needsCgroups1: boolean;
  /** What nodes run by default for a folder; undefined: whatever suits releases. */
  readonly folderDistribution: "debian-12" | "almalinux-8" | "almalinux-9" | undefined;
  /** Installs what the platform needs into a node image, for backends that build one; undefined: nothing, or not known yet. */
  readonly imagePreparation: ImagePreparation | undefined;
  /** TCP ports, besides 22, that users' machines must reach on the nodes; taken from the layout. */
  readonly openPorts: readonly number[];
  /** Stored with the machines, and reachable from this machine; undefined: not known yet. */
  readonly webUi: WebUi | undefined;
  /** Stored with the machines; see ClusterRecord. */
  readonly platform?: string | undefined;
  /** Milliseconds from the claim until the machines end by themselves; absent: as usual for the backend. */
  readonly lifetimeMs?: number | undefined;
  /** Whether nothing will be created: then the plan also throws what only the launch would find out. */
  readonly isRehearsal?: boolean;
}

/** Requests a cluster from a snapshot, with the same nodes, software and data. */
export interface CopyRequest extends Pick<CreationRequest<never>, "clusterId" | "lifetimeMs"> {
  /** The number of such clusters that are created together, and must fit on this computer together; absent: one. */
  readonly copies?: number | undefined;
  readonly source: ClusterRecord;
  readonly snapshot: string;
}

export interface FileCopyRequest extends Pick<CopyRequest, "clusterId" | "lifetimeMs" | "copies"> {
  readonly file: ClusterFileReference;
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
  readonly firstLogin: FirstLogin;

  /** Claims the id, and creates what the machines need. Throws `cluster-exists` if somebody else has claimed the id since. */
  claim(folder: CreationFolder, signal: AbortSignal): Promise<void>;
  /** Requests every machine. `publicKey`, an `authorized_keys` line, grants access to all of them. */
  launch(publicKey: string, signal: AbortSignal): Promise<void>;
  /** The current state. Throws `machine-failed` and similar errors if it can no longer become the cluster. */
  look(signal: AbortSignal): Promise<ClusterRecord>;
  /** The current state, whatever happened to the cluster: for logs. */
  describe(signal: AbortSignal): Promise<ClusterRecord>;

  /**
   * Called after a failure of the launch or of a machine. Returns whether the machines can be launched again in another way; if so, `launch` is
   * called again. May throw the failure with better advice. If absent, the answer is no.
   */
  readonly recover?: (failure: unknown, signal: AbortSignal) => Promise<boolean>;

  /** Ends all machines. Safe to repeat. */
  stop(signal: AbortSignal): Promise<void>;
  /** Removes everything, after `stop`. Resolves with a sentence about what is left, if anything. Safe to repeat. */
  remove(signal: AbortSignal): Promise<string | undefined>;
  /** Describes what exists now, and how to remove it. `undefined`: nothing has been requested yet. */
  remains(): CreationRemains | undefined;
}

/** How to wait for a new node, and to log in to it for the first time. */
export interface FirstLogin {
  /** The longest pause between two calls of `look`, in milliseconds. */
  readonly lookEveryMs: number;
  /** Milliseconds after which a machine that has an address counts as unreachable if it shows nothing new meanwhile. */
  readonly limitMs: number;
  /** What shows, besides the answers to attempts, that a machine is still booting: it changes as long as it is. */
  readonly sign?: (node: NodeRecord) => Promise<string>;
  /** The longest pause between two attempts, in milliseconds. */
  readonly everyMs: number;
  hostKey(node: NodeRecord): FirstHostKey;
  /** Resolves once the node's first boot has finished. If absent, it has when the node accepts a login. */
  readonly finishBoot?: (node: NodeRecord, shell: NodeShell, signal: AbortSignal) => Promise<void>;
  /** Called once all nodes have been logged in to, beside the installation. */
  readonly finishBoots?: (signal: AbortSignal) => Promise<void>;
  /** Why a node may never have answered, and how to fix it. `undefined`, or absent: nothing is known. */
  readonly whyUnreachable?: (
    signal: AbortSignal,
  ) => Promise<{ readonly reason: string; readonly hint: string } | undefined>;
}

interface FirstHostKey {
  /** `ssh-ed25519 AAAA…`. */
  readonly publicKey: string;
  /** Whether only this process and the node can know the private half. If not, the node gets another key at its first login. */
  readonly isPrivate: boolean;
}

export interface CreationRemains {
  /** For users who asked to keep the machines of a failed creation. Follows "Kept as requested: ". */
  readonly kept: string;
  /** For users who give up now, or whose removal failed: sentences about what may be left. */
  readonly left: string;
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
      readonly sudo?: boolean;
      readonly stdin?: AsyncIterable<Uint8Array>;
      readonly onOutput?: (stream: "stdout" | "stderr", chunk: string) => void | Promise<void>;
      readonly limitMs?: number;
      /** A description of the command, for the message that it took too long. */
      readonly task?: string;
    },
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }>;
}

/** For `--dry-run`, and for `-v` before the launch. */
export interface CreationSummary {
  readonly counts: Counts;
  /** Ordered pairs for people, such as ["Image", "ami-… (debian-12-amd64-…)"]. */
  readonly lines: readonly (readonly [label: string, value: string])[];
  /** The same facts as data, for JSON output. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** Saves clusters under names and brings them back. */
export interface Snapshots {
  /** Oldest first. */
  list(cluster: ClusterName, signal: AbortSignal): Promise<readonly SnapshotRecord[]>;
  /** Saves all nodes as they are at one moment, or nothing. Throws `snapshot-exists`, and `machine-failed` if a node does not run. */
  create(cluster: ClusterRecord, name: string, signal: AbortSignal): Promise<void>;
  /**
   * Puts all nodes back. Checks the snapshot before it touches anything: throws `snapshot-not-found`,
   * `snapshot-unusable`. If it is cut short, another restore repairs the cluster.
   */
  restore(cluster: ClusterRecord, name: string, signal: AbortSignal): Promise<void>;
  /** Deletes the snapshot, complete or not. Throws `snapshot-not-found`. */
  delete(cluster: ClusterName, name: string, signal: AbortSignal): Promise<void>;
  /** Whether restored nodes continue where they were. Otherwise they boot from their disks. */
  readonly holdsMemory: boolean;
  /** Writes the snapshot to a file. Leaves nothing behind if it fails. Throws `snapshot-not-found`, `snapshot-unusable`, `capacity-lacking`, `bad-usage`. */
  save(cluster: ClusterName, name: string, file: SnapshotFile, signal: AbortSignal): Promise<void>;
  /** Plans a cluster from a snapshot, or from such a file. Throws the errors of `plan`, `snapshot-not-found`, `snapshot-unusable` and the like. */
  planCopy(request: CopyRequest | FileCopyRequest, signal: AbortSignal): Promise<Creation>;
}

/** Booted machines on this computer from which others are copied. */
export interface Templates {
  /** Sorted by last use, the most recent at the end. */
  list(signal: AbortSignal): Promise<readonly TemplateRecord[]>;
  /** Removes one, or all unused ones; returns their names. Throws `bad-usage` if the template doesn't exist or is in use. */
  remove(name: string | undefined, signal: AbortSignal): Promise<readonly string[]>;
}
