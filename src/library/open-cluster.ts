import { randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import type { Backend } from "../backend/contract.ts";
import { clusterKey, keyMissing, openConnections } from "../cluster/connections.ts";
import { createCluster } from "../cluster/create.ts";
import {
  type CreateRequest,
  type NewMachines,
  type SnapshotCopy,
  parseSnapshotReference,
} from "../cluster/create/create-request.ts";
import { anyCounts, chooseCounts, mostNodes } from "../cluster/create/choose-counts.ts";
import { findCluster } from "../cluster/find-cluster.ts";
import { ClusterError } from "../errors.ts";
import { type ClusterRecord, type Variant, variants } from "../model/cluster-record.ts";
import { clusterIdRule } from "../model/parse-values.ts";
import {
  type Shape,
  anything,
  byRule,
  flag,
  milliseconds,
  optional,
  readArguments,
  required,
  signal as signalCheck,
  text,
  textBy,
} from "../model/read-arguments.ts";
import { sha256Rule, wholeNumber, wordOf } from "../model/rule.ts";
import { headLimitMs, readArtifactHead } from "../platform/artifact/artifact-head.ts";
import { checksumProblem, locateArtifact } from "../platform/artifact/artifact-request.ts";
import type { Configuration } from "../platform/configuration/configuration.ts";
import { baseConfigurationOf } from "../platform/configuration/install-configuration.ts";
import type { PlatformFacts } from "../platform/folder/platform-file.ts";
import { firstMasterOf } from "../platform/install/steps.ts";
import { readResolvers } from "../platform/resolvers.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { readKeyPair } from "../ssh/own-key.ts";
import { makeCreationFolder } from "../store/creation-folder.ts";
import { accepted, badUsage } from "../model/checked.ts";
import { writePrivateFile } from "../system/files/private-file.ts";
import { type Runtime, type Work, passedMs } from "../system/runtime.ts";
import { timeLimit, tooSlow } from "../system/time-limit.ts";
import { signalOf, usualLimitMs } from "./call-options.ts";

/** How to create a cluster. */
interface CreationOptions {
  /**
   * 1 to 63 letters, digits, `_`, `.` and `-`; default: a random id, so that several clusters can
   * exist side by side.
   */
  readonly clusterId?: string;
  /** Path of your own private key that opens the nodes; default: a new key for the cluster. */
  readonly sshKey?: string;
  /** Leaves the machines as they are if the creation fails; default: false. */
  readonly keepOnFailure?: boolean;
  /** Milliseconds that the creation may take (`deadline-passed`); default: one hour. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds from the creation until the nodes end by themselves, even if this process is gone;
   * for containers and virtual machines. What is left of them is removed by the next command or
   * call that looks for clusters. Default: the cluster exists until it is destroyed.
   */
  readonly lifetimeMs?: number;
  /** When aborted, removes what was created and then throws the signal's reason. */
  readonly cancelSignal?: AbortSignal;
}

/** The cluster to create. */
export interface NewClusterRequest extends CreationOptions {
  /** Must match the artifact that will be installed; leave it out if that has no variants. */
  readonly variant?: Exclude<Variant, "none">;
  /**
   * The platform of your own that will be installed: its folder, the file that `pack` wrote, or
   * `example:etcd` and the like. Then node images contain its packages, its ports are open, and it
   * decides the node counts that you leave out.
   */
  readonly platform?: string;
  /**
   * Installs `platform`, too, and waits until it is ready, within `timeoutMs` each; if that fails,
   * the cluster is destroyed unless `keepOnFailure` is set. Default: false.
   */
  readonly install?: boolean;
  /**
   * Node counts: 1 or more masters (1, 3, 5, 7 or 9 for a release artifact), 0 or more agents and
   * public agents, at most 1,000 in all; default: 1 of each.
   */
  readonly masters?: number;
  readonly agents?: number;
  readonly publicAgents?: number;
  readonly from?: undefined;
}

/** The cluster to create from a snapshot. Its nodes, their sizes and the platform on them are those of the snapshot. */
export interface CopyClusterRequest extends CreationOptions {
  /**
   * The id of the cluster that has the snapshot, and the snapshot's name: `default:installed`. Or a file that
   * `Cluster.saveSnapshot` wrote: a URL, or a path, which has a `/` or no colon.
   */
  readonly from: string;
  /** The expected SHA-256 checksum of the file, in hexadecimal; required if `from` is a URL. */
  readonly sha256?: string;
}

export type ClusterRequest = NewClusterRequest | CopyClusterRequest;

/** A cluster with its connections, and the facts that an installation needs from it. */
export interface OpenCluster extends Omit<BackendSettings<unknown>, "options"> {
  readonly backend: Backend<unknown>;
  readonly record: ClusterRecord;
  readonly base: Known<Configuration>;
  readonly ipDetectPath: string;
}

/** A fact, or why it could not be found out. The problem is thrown only for callers that need the fact. */
type Known<Value> = { readonly value: Value } | { readonly problem: unknown };

export async function createForLibrary<Options>(
  clusters: ClusterBackend<Options>,
  given: ClusterRequest,
): Promise<OpenCluster> {
  assertBackend(clusters);
  const request = await readRequest(given);
  const { options, ...settings } = clusters.settings();
  if (request.from !== undefined && isOffline(options))
    throw new ClusterError(
      "bad-usage",
      "`offline`: nodes of a copy are offline if those of its snapshot are.",
      {
        hint: "Leave it out, and make the snapshot of a cluster that is offline.",
      },
    );
  const { runtime } = settings;
  const { clusterId = `test-${randomBytes(4).toString("hex")}` } = request;
  const signal = signalOf(request);
  const limitMs = request.timeoutMs ?? usualLimitMs;
  const deadlineMs = passedMs(runtime.clock) + limitMs;
  using limit = timeLimit(limitMs, tooSlow("Creating", clusterId));
  const machines =
    request.from === undefined
      ? newMachines(clusters, request, await readPlatform({ ...runtime, signal }, request))
      : { from: referenceIn(request) };
  const backend = await clusters.open(AbortSignal.any([signal, limit.signal]));
  const learned: { base?: Configuration } = {};
  const create: CreateRequest<Options> = {
    clusterId,
    machines,
    // The installation comes later. Reading facts from the machines is part of their creation, so
    // that a failure here leaves nothing behind.
    installation: undefined,
    readFacts: async ({ cluster, connections }, inner) => {
      learned.base = await readBase(backend, cluster, connections, inner);
      await writePrivateFile(ipDetectFile(cluster), backend.nodes.ipDetect);
    },
    ownKey: request.sshKey,
    keepOnFailure: request.keepOnFailure ?? false,
    lifetimeMs: request.lifetimeMs,
    deadlineMs,
    onAbandon: () => ({ [Symbol.dispose]: () => {} }),
  };
  const record = await createCluster({ ...runtime, signal }, create, {
    backend,
    install: undefined,
  });
  if (learned.base === undefined)
    throw new TypeError("The backend did not wait for the creation to complete");
  return {
    ...settings,
    backend,
    record,
    base: { value: learned.base },
    ipDetectPath: ipDetectFile(record),
  };
}

const isOffline = (options: unknown): boolean =>
  typeof options === "object" &&
  options !== null &&
  "offline" in options &&
  options.offline === true;

async function readPlatform(
  { clock, signal }: Work,
  { platform: given, variant }: NewClusterRequest,
): Promise<PlatformFacts | undefined> {
  if (given === undefined) return undefined;
  const location = accepted(await locateArtifact(given, resolve(), signal));
  if (checksumProblem(location, undefined) !== undefined)
    throw new ClusterError(
      "bad-usage",
      "`platform`: plain http from another computer can be changed on the way.",
      {
        hint: "Use https://, or download the file yourself and pass its path.",
      },
    );
  const { platform } = await readArtifactHead(location, { clock, limitMs: headLimitMs }, signal);
  if (platform !== undefined && variant === undefined) return platform;
  throw new ClusterError(
    "bad-usage",
    "`platform`: takes only a platform without variants, such as a folder.",
    {
      hint: "Leave it out, and pass the release to `installFromPath`.",
    },
  );
}

const newMachines = <Options>(
  clusters: ClusterBackend<Options>,
  request: NewClusterRequest,
  platform: PlatformFacts | undefined,
): NewMachines<Options> => ({
  variant: request.variant ?? "none",
  counts: accepted(
    chooseCounts(
      { master: request.masters, agent: request.agents, public_agent: request.publicAgents },
      platform ?? anyCounts,
    ),
  ),
  ...(platform && { platform }),
  distribution: clusters.distribution,
  options: clusters.settings().options,
});

function referenceIn({ from, sha256: given }: CopyClusterRequest): SnapshotCopy["from"] {
  const reference = parseSnapshotReference(from, resolve());
  if ("problem" in reference) throw new ClusterError("bad-usage", `from: ${reference.problem}.`);
  const sum = sha256Rule.read(given);
  if ("location" in reference && ("path" in reference.location || sum !== undefined))
    return { ...reference, sha256: sum };
  if (!("location" in reference) && sum === undefined) return reference;
  throw new ClusterError(
    "bad-usage",
    "`sha256`: a URL in `from` requires it, and only a file can have it.",
  );
}

const creationShape: Shape<CreationOptions> = {
  clusterId: optional(textBy(clusterIdRule)),
  sshKey: optional(text),
  keepOnFailure: optional(flag),
  timeoutMs: optional(milliseconds),
  lifetimeMs: optional(milliseconds),
  cancelSignal: optional(signalCheck),
};

const nodes = optional(byRule(wholeNumber(0, mostNodes)));
const newShape: Shape<NewClusterRequest> = {
  ...creationShape,
  variant: optional(byRule(wordOf(variants))),
  platform: optional(text),
  install: optional(flag),
  masters: optional(byRule(wholeNumber(1, mostNodes))),
  agents: nodes,
  publicAgents: nodes,
  from: optional(anything),
};

const copyShape: Shape<CopyClusterRequest> = {
  ...creationShape,
  from: required(text),
  sha256: optional(textBy(sha256Rule)),
};

/** Checks everything about a request that can be checked here. Throws `bad-usage` with every problem. */
async function readRequest(given: ClusterRequest): Promise<ClusterRequest> {
  const request = isCopyRequest(given)
    ? readCopyRequest(given)
    : readArguments(given, newShape, ({ install, platform }) =>
        install === true && platform === undefined ? ["`install`: pass `platform` too"] : [],
      );
  if (request.sshKey !== undefined) await readKeyPair(resolve(request.sshKey));
  return request;
}

/** Callers without types may pass anything. */
const isCopyRequest = (given: ClusterRequest | undefined | null): given is CopyClusterRequest =>
  given?.from !== undefined;

/** Refuses the options that the snapshot determines. */
function readCopyRequest(given: CopyClusterRequest): CopyClusterRequest {
  const replaced = ["variant", "platform", "install", "masters", "agents", "publicAgents"];
  const found = Object.entries(given).filter(
    ([name, value]) => replaced.includes(name) && value !== undefined,
  );
  const problems = found.map(([name]) => `\`${name}\` cannot be combined with \`from\``);
  if (problems.length > 0) throw badUsage(problems);
  const request = readArguments(given, copyShape);
  referenceIn(request);
  return request;
}

const ipDetectFile = ({ directory }: ClusterRecord): string => join(directory, "ip-detect");

export async function findForLibrary<Options>(
  clusters: ClusterBackend<Options>,
  clusterId: string,
  signal: AbortSignal,
): Promise<OpenCluster> {
  assertBackend(clusters);
  readArguments({ clusterId }, { clusterId: required(textBy(clusterIdRule)) });
  const { options: _options, ...settings } = clusters.settings();
  const { runtime } = settings;
  const backend = await clusters.open(signal);
  const record = await findCluster(backend, clusterId, signal);
  // The folder exists only on the machine that created the cluster.
  await makeCreationFolder(record.directory);
  await writePrivateFile(ipDetectFile(record), backend.nodes.ipDetect);
  const base = await baseIfReachable({ ...runtime, signal }, backend, record);
  return { ...settings, backend, record, base, ipDetectPath: ipDetectFile(record) };
}

/** A master that doesn't answer must not delay `Cluster.find` for long. */
const baseLimitMs = 15_000;

async function baseIfReachable(
  work: Work,
  backend: Backend<unknown>,
  record: ClusterRecord,
): Promise<Known<Configuration>> {
  if (!(await clusterKey(record)).isHere) return { problem: keyMissing(record) };
  using limit = timeLimit(baseLimitMs, masterHangs(record));
  try {
    await using connections = openConnections(record.directory, work);
    const limited = AbortSignal.any([work.signal, limit.signal]);
    return { value: await readBase(backend, record, connections, limited) };
  } catch (problem) {
    work.signal.throwIfAborted();
    return { problem };
  }
}

const masterHangs = ({ id }: ClusterRecord): ClusterError =>
  new ClusterError(
    "connection-failed",
    `The first master did not answer within ${baseLimitMs / 1000} s.`,
    {
      hint: "When it answers, find the cluster again.",
      transient: true,
      facts: { cluster: id },
    },
  );

async function readBase(
  backend: Backend<unknown>,
  record: ClusterRecord,
  connections: ConnectionPool,
  signal: AbortSignal,
): Promise<Configuration> {
  const resolvers = await readResolvers(
    await connections.connect(firstMasterOf(record), signal),
    signal,
  );
  const hasPublicDetector = backend.nodes.ipDetectPublic !== undefined;
  return baseConfigurationOf(record, {
    variant: record.variant,
    licenseKey: undefined,
    hasPublicDetector,
    resolvers,
  });
}

/** A backend as users of the library construct it: it knows its own options, and has not queried anything yet. */
export interface ClusterBackend<Options> {
  readonly distribution: string;
  /**
   * A method, because printing a backend must not show these: the environment contains credentials,
   * and options may contain some.
   */
  settings(): BackendSettings<Options>;
  /** Checks credentials and the like, and throws their errors. Changes nothing. */
  open(signal: AbortSignal): Promise<Backend<Options>>;
}

export interface BackendSettings<Options> {
  readonly runtime: Runtime;
  readonly options: Options;
  /** Why SELinux can't be set to enforcing on nodes with this distribution, as one sentence; absent: it can on all. */
  readonly selinuxProblem?: (distribution: string) => string | undefined;
}

/** Throws `bad-usage` for anything that isn't a backend. */
export function assertBackend(given: ClusterBackend<unknown>): void {
  const found: Partial<ClusterBackend<unknown>> | null | undefined = given;
  if (typeof found?.settings === "function" && typeof found.open === "function") return;
  throw new ClusterError(
    "bad-usage",
    "The backend must be a CloudBackend, a ContainerBackend or a VmBackend.",
  );
}
