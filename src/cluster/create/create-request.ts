import { resolve } from "node:path";
import type { CreationRequest, CreationSummary } from "../../backend/contract.ts";
import type { ClusterFileReference } from "../../model/snapshot.ts";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import type { ClusterRecord, Variant } from "../../model/cluster-record.ts";
import { parseClusterId, parseSnapshotName } from "../../model/parse-values.ts";
import type {
  AddedConfiguration,
  CompleteConfiguration,
  InstallPlan,
} from "../../platform/install/install-plan.ts";
import type { PlatformFacts } from "../../platform/folder/platform-file.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { type Clock, passedMs } from "../../system/runtime.ts";
import { timeLimit, tooSlow } from "../../system/time-limit.ts";
import type { SnapshotName } from "../snapshots.ts";

export interface CreateRequest<Options> {
  readonly clusterId: string;
  readonly machines: NewMachines<Options> | SnapshotCopy;
  /** Undefined: only machines are created. Machines from a snapshot continue where they were saved. */
  readonly installation: InstallationRequest | undefined;
  /** Path of the user's own private key; undefined: a new key for this cluster. */
  readonly ownKey: string | undefined;
  /** Read only after a failure. */
  readonly keepOnFailure: boolean;
  /** Milliseconds from the creation until the machines end by themselves; absent: as usual for the backend. */
  readonly lifetimeMs?: number | undefined;
  /** The time of `passedMs` at which the creation gives up. */
  readonly deadlineMs: number;
  /** What the user typed, with secrets masked. */
  readonly commandLine?: string;
  /**
   * Registers a description of what may be left behind if the program has to end at once. Disposed
   * of with the creation.
   */
  readonly onAbandon: (describe: () => string) => Disposable;
  /**
   * The last step of a creation that installs nothing: reads what the caller needs from the nodes.
   * If it fails, so does the creation.
   */
  readonly readFacts?: (
    nodes: { readonly cluster: ClusterRecord; readonly connections: ConnectionPool },
    signal: AbortSignal,
  ) => Promise<void>;
  /** Throws if a cluster of this plan would be of no use. Nothing is created then. */
  readonly assertPlan?: (summary: CreationSummary) => void;
  /** Uses the cluster, which is removed afterwards. A failure counts as a failure of the creation. */
  readonly use?: (cluster: ClusterRecord) => Promise<void>;
  /** Where the logs go after a failure; absent: the creation's folder on this machine. */
  readonly logsFolder?: string | undefined;
}

export interface NewMachines<Options> extends Pick<
  CreationRequest<Options>,
  "variant" | "distribution" | "counts" | "options"
> {
  /** The platform of the user's own that will be installed later, if it is known already. */
  readonly platform?: PlatformFacts;
}

/** Machines that continue from another cluster's snapshot, which is on this computer or in a file. */
export interface SnapshotCopy {
  readonly from: SnapshotName | ClusterFileReference;
  /** How many such clusters are created at once, by as many requests; absent: one. */
  readonly copies?: number | undefined;
}

export interface InstallationRequest extends Omit<
  InstallPlan,
  "layout" | "platform" | "variant" | "configuration"
> {
  /** Undefined: the artifact decides, but one that has variants requires it. */
  readonly variant: Variant | undefined;
  readonly configuration: CompleteConfiguration | ConfigurationRequest;
}

interface ConfigurationRequest extends Omit<AddedConfiguration, "licenseKey"> {
  /** Path of the license file; undefined: the file that the environment names, if any. */
  readonly licenseFile: string | undefined;
}

/**
 * Reads `CLUSTER:NAME`, a URL, or the path of a file, which has a slash or no colon. Returns what
 * is wrong with it as one sentence if it is something else.
 */
export function parseSnapshotReference(
  given: string,
  cwd: string,
): SnapshotCopy["from"] | { readonly problem: string } {
  if (/^https?:\/\//i.test(given))
    return URL.parse(given) === null
      ? { problem: "it is not a valid URL" }
      : { location: { url: given } };
  if (given !== "" && (given.includes("/") || !given.includes(":")))
    return { location: { path: resolve(cwd, given), shown: given } };
  const [clusterId = "", ...rest] = given.split(":");
  const name = parseSnapshotName(rest.join(":"));
  if (name !== undefined && parseClusterId(clusterId) !== undefined) return { clusterId, name };
  return {
    problem: `"${given}" is not a cluster id and a snapshot's name, such as default:installed`,
  };
}

/**
 * Returns the limit of a creation: its deadline, or the end of a shorter lifetime, at which its
 * nodes would end one by one.
 */
export function creationLimit(
  {
    clusterId,
    deadlineMs,
    lifetimeMs = Infinity,
  }: Pick<CreateRequest<never>, "clusterId" | "deadlineMs" | "lifetimeMs">,
  clock: Clock,
): ReturnType<typeof timeLimit> {
  const limitMs = deadlineMs - passedMs(clock);
  if (limitMs <= lifetimeMs) return timeLimit(limitMs, tooSlow("Creating", clusterId));
  return timeLimit(lifetimeMs, lifetimeTooShort(clusterId));
}

const lifetimeTooShort = (clusterId: string): ClusterError =>
  new ClusterError(
    "deadline-passed",
    `Creating cluster "${clusterId}" took longer than its lifetime.`,
    {
      hint: `Allow more time with ${optionName("lifetime")}.`,
      facts: { cluster: clusterId },
    },
  );
