import { tmpdir } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { installOn } from "../cluster/create.ts";
import type { Machines } from "../cluster/create/starting-machines.ts";
import type { InstallationRequest } from "../cluster/create/create-request.ts";
import { saveFailureLogs } from "../cluster/logs/save-logs.ts";
import { chooseCounts } from "../cluster/create/choose-counts.ts";
import { planInstallation } from "../cluster/plan-installation.ts";
import { ClusterError } from "../errors.ts";
import { type ClusterRecord, countNodes } from "../model/cluster-record.ts";
import {
  type Shape,
  flag,
  listOf,
  mappingOf,
  milliseconds,
  objectWith,
  optional,
  plainData,
  readArguments,
  required,
  signal as signalCheck,
  text,
  textThat,
} from "../model/read-arguments.ts";
import { locateFile } from "../platform/artifact/artifact-request.ts";
import type { Configuration } from "../platform/configuration/configuration.ts";
import { readGenconfFolder } from "../platform/configuration/configuration-file.ts";
import {
  type CopyToMaster,
  listCopyToMaster,
} from "../platform/configuration/install-configuration.ts";
import { openInstallation } from "../platform/install/steps.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { accepted } from "../model/checked.ts";
import { readOwnText } from "../system/files/read-text.ts";
import { endedBy } from "../system/runtime.ts";
import { timeLimit, tooSlow } from "../system/time-limit.ts";
import { usualLimitMs, withLibraryWords } from "./call-options.ts";
import type { OpenCluster } from "./open-cluster.ts";

/** An installation on a cluster. Paths are on this computer; relative paths start at the current folder. */
export interface Installation {
  /**
   * Path of the release artifact, an installer generator script for the cluster's variant; or of
   * the folder of a platform of your own; or `example:etcd` and the like, as the command `examples`
   * lists them.
   */
  readonly buildArtifact: string;
  /**
   * The artifact's complete configuration, as a mapping, so begin with `...cluster.baseConfig`,
   * which is the default. Only keys that a DC/OS release needs on these nodes are added if they are
   * missing: `check_time` and `exhibitor_tls_enabled`. An enterprise license goes in here too, as
   * `license_key_contents`.
   */
  readonly clusterConfig?: Configuration;
  /** Path of a script that prints a node's private IPv4 address; default: the backend's own, `cluster.ipDetectPath`. */
  readonly ipDetectPath?: string;
  /**
   * Path of a folder whose files are all copied into the installer's `genconf` folder. An
   * `ip-detect` in it takes precedence.
   */
  readonly genconfDir?: string;
  /** Files and folders to copy to the masters before the installation, as root; `target` is absolute. */
  readonly copyToMaster?: readonly CopyToMaster[];
  /** Puts SELinux into enforcing mode before the installation; default: false. */
  readonly enableSelinuxEnforcing?: boolean;
  /**
   * Milliseconds within which the installation must have started on all nodes (`deadline-passed`);
   * default: one hour.
   */
  readonly timeoutMs?: number;
  /** When aborted, ends the work and throws the signal's reason. */
  readonly cancelSignal?: AbortSignal;
}

const copyShape: Shape<CopyToMaster> = {
  source: required(text),
  target: required(
    textThat((path) =>
      isAbsolute(path) ? undefined : `the path on the master must be absolute, but ${path} is not`,
    ),
  ),
};

const shape: Shape<Installation> = {
  buildArtifact: required(text),
  clusterConfig: optional(mappingOf(plainData)),
  ipDetectPath: optional(text),
  genconfDir: optional(text),
  copyToMaster: optional(listOf(objectWith(copyShape))),
  enableSelinuxEnforcing: optional(flag),
  timeoutMs: optional(milliseconds),
  cancelSignal: optional(signalCheck),
};

/** Throws `bad-usage` with every problem that can be found without looking at files. */
export function readInstallation(
  given: Installation,
  { record, selinuxProblem }: OpenCluster,
): Installation {
  return readArguments(given, shape, ({ enableSelinuxEnforcing }) => {
    const problem =
      enableSelinuxEnforcing === true ? selinuxProblem?.(record.distribution) : undefined;
    return problem === undefined ? [] : [`\`enableSelinuxEnforcing\`: ${problem}`];
  });
}

const failureLogsLimitMs = 20_000;

export async function installFromPath(
  cluster: OpenCluster,
  given: Installation,
  connections: ConnectionPool,
  signal: AbortSignal,
): Promise<void> {
  // Everything that can be checked here is checked before anything touches a node.
  const [request, ipDetect] = await Promise.all([
    requestFrom(cluster, given, signal),
    readScript(given.ipDetectPath ?? cluster.ipDetectPath),
  ]);
  const { backend, record, runtime } = cluster;
  const plan = await planInstallation({ ...runtime, signal }, request);
  accepted(chooseCounts(countNodes(record.nodes), plan.platform));
  const slow = tooSlow(
    "Starting the installation on",
    record.id,
    "Allow more time with `timeoutMs`.",
  );
  using limit = timeLimit(given.timeoutMs ?? usualLimitMs, slow);
  try {
    const installation = openInstallation(runtime, plan, { ...backend.nodes, ipDetect });
    const work = endedBy({ ...runtime, connections, signal }, limit);
    await installOn(work, launchedMachines(record), installation);
  } catch (error) {
    if (!signal.aborted) await keepFailureLogs(cluster, connections);
    throw error;
  }
}

/** Returns machines that have been launched and accept logins already. */
export const launchedMachines = (cluster: ClusterRecord): Machines => ({
  cluster,
  launch: async () => {},
  watch: async () => {},
  arrivals: async function* arrivals() {
    yield* cluster.nodes;
  },
  logIn: async () => {},
  untilComplete: async () => cluster,
});

async function requestFrom(
  { record, base }: OpenCluster,
  given: Installation,
  signal: AbortSignal,
): Promise<InstallationRequest> {
  const { genconfDir, copyToMaster = [] } = given;
  const [artifact, genconf, copies] = await Promise.all([
    locateFile(given.buildArtifact, signal),
    genconfDir === undefined ? undefined : readGenconfFolder(resolve(genconfDir), signal),
    Promise.all(
      copyToMaster.map(async (copy) =>
        listCopyToMaster({ ...copy, source: resolve(copy.source) }, signal),
      ),
    ),
  ]);
  return {
    artifact: accepted(artifact),
    sha256: undefined,
    variant: record.variant,
    configuration: { kind: "complete", values: given.clusterConfig ?? baseConfigOf(base) },
    genconfFiles: genconf === undefined ? [] : accepted(genconf),
    copyToMaster: copies.flatMap(accepted),
    selinuxEnforcing: given.enableSelinuxEnforcing ?? false,
    workspaceFolder: tmpdir(),
  };
}

/** Throws why the first master could not be asked for it. */
export function baseConfigOf(base: OpenCluster["base"]): Configuration {
  if ("value" in base) return base.value;
  throw withLibraryWords(base.problem);
}

async function readScript(path: string): Promise<string> {
  try {
    return await readOwnText(path);
  } catch (error) {
    throw new ClusterError("bad-usage", `\`ipDetectPath\`: cannot read the script ${path}.`, {
      cause: error,
    });
  }
}

/** Saves logs that explain a failure in the cluster's folder, because the machines may be gone the next moment. */
export async function keepFailureLogs(
  { backend, record, runtime }: OpenCluster,
  connections: ConnectionPool,
): Promise<void> {
  const request = { cluster: record, connections, directory: record.directory };
  await saveFailureLogs(
    { ...runtime, signal: AbortSignal.timeout(failureLogsLimitMs) },
    backend,
    request,
  );
}
