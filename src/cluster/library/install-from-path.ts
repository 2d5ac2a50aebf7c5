import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { ClusterError } from "../../errors.ts";
import {
  anything,
  flag,
  listOf,
  mappingOf,
  milliseconds,
  objectWith,
  optional,
  readArguments,
  required,
  type Shape,
  signal as signalCheck,
  text,
  textThat,
} from "../../model/read-arguments.ts";
import type { Configuration } from "../../platform/configuration/configuration.ts";
import type { CopyToMaster } from "../../platform/configuration/copy-to-master.ts";
import { listCopyToMaster } from "../../platform/configuration/copy-to-master.ts";
import { readGenconfFolder } from "../../platform/configuration/genconf-folder.ts";
import type { FileToCopy } from "../../platform/configuration/genconf-folder.ts";
import type { InstallPlan } from "../../platform/install-plan.ts";
import { createInstaller } from "../../platform/installer.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { accepted } from "../../system/checked.ts";
import { saveFailureLogs } from "../logs/save-failure-logs.ts";
import type { InstallationRequest } from "../plan-installation.ts";
import { checkInstallation, planInstallation } from "../plan-installation.ts";
import type { OpenCluster } from "./open-cluster.ts";

/** An installation on a cluster. Paths are on this machine; relative paths start at the current folder. */
export interface Installation {
  /** Path of the release artifact, an installer generator script for the cluster's variant. */
  readonly buildArtifact: string;
  /**
   * The artifact's complete configuration, as a mapping, so begin with `...cluster.baseConfig`. Only keys that a DC/OS release needs on these nodes
   * are added if they are missing: `check_time` and `exhibitor_tls_enabled`. An enterprise license goes in here too, as `license_key_contents`.
   */
  readonly clusterConfig: Configuration;
  /** Path of a script that prints a node's private IPv4 address; the backend's own is `cluster.ipDetectPath`. */
  readonly ipDetectPath: string;
  /** Path of a folder whose files are all copied into the installer's `genconf` folder. An `ip-detect` in it takes precedence. */
  readonly genconfDir?: string;
  /** Files and folders to copy to the masters before the installation, as root; `target` is absolute. */
  readonly copyToMaster?: readonly CopyToMaster[];
  /** Puts SELinux into enforcing mode before the installation; default: false. */
  readonly enableSelinuxEnforcing?: boolean;
  /** Milliseconds within which the installation must have started on all nodes (`deadline-passed`); default: one hour. */
  readonly timeoutMs?: number;
  /** When aborted, ends the work and throws the signal's reason. */
  readonly cancelSignal?: AbortSignal;
}

const copyShape: Shape<CopyToMaster> = {
  source: required(text),
  target: required(
    textThat((path) => (isAbsolute(path) ? undefined : `the path on the master must be absolute, but ${path} is not`)),
  ),
};

const shape: Shape<Installation> = {
  buildArtifact: required(text),
  clusterConfig: required(mappingOf(anything)),
  ipDetectPath: required(text),
  genconfDir: optional(text),
  copyToMaster: optional(listOf(objectWith(copyShape))),
  enableSelinuxEnforcing: optional(flag),
  timeoutMs: optional(milliseconds),
  cancelSignal: optional(signalCheck),
};

/** Throws `bad-usage` with every problem that can be found without looking at files. */
export function readInstallation(given: Installation, { record, selinuxProblem }: OpenCluster): Installation {
  return readArguments(given, shape, ({ enableSelinuxEnforcing }) => {
    const problem = enableSelinuxEnforcing === true ? selinuxProblem?.(record.distribution) : undefined;
    return problem === undefined ? [] : [`\`enableSelinuxEnforcing\`: ${problem}`];
  });
}

const usualLimitMs = 60 * 60_000;
const failureLogsLimitMs = 20_000;

/** Starts the installation on all nodes; see Cluster.installFromPath. */
export async function installFromPath(
  cluster: OpenCluster,
  installation: Installation,
  connections: ConnectionPool,
  signal: AbortSignal,
): Promise<void> {
  const plan = await planFrom(cluster, installation, signal);
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(tooSlow(cluster)), installation.timeoutMs ?? usualLimitMs);
  try {
    await startInstallation(cluster, plan, connections, AbortSignal.any([signal, limit.signal]));
  } catch (error) {
    if (!signal.aborted) await keepFailureLogs(cluster, connections);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function startInstallation(
  { record, runtime }: OpenCluster,
  plan: InstallPlan,
  connections: ConnectionPool,
  signal: AbortSignal,
): Promise<void> {
  const { clock, progress } = runtime;
  await using installer = createInstaller(plan, { connections, clock, progress }, signal);
  await installer.start(record);
}

/** Checks everything that can be checked here before it touches a node. */
async function planFrom(
  { backend, record, runtime }: OpenCluster,
  installation: Installation,
  signal: AbortSignal,
): Promise<InstallPlan> {
  const path = resolve(installation.buildArtifact);
  const [ipDetect, genconfFiles, copyToMaster] = await Promise.all([
    readScript(installation.ipDetectPath),
    filesForGenconf(installation.genconfDir),
    Promise.all((installation.copyToMaster ?? []).map(filesForMasters)),
  ]);
  const request: InstallationRequest = {
    artifact: { kind: "file", path, shown: path },
    sha256: undefined,
    variant: record.variant,
    configuration: { kind: "complete", values: installation.clusterConfig },
    genconfFiles,
    copyToMaster: copyToMaster.flat(),
    selinuxEnforcing: installation.enableSelinuxEnforcing ?? false,
    workspaceFolder: tmpdir(),
  };
  return planInstallation(await checkInstallation(request, runtime, signal), backend, ipDetect);
}

async function readScript(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new ClusterError("bad-usage", `\`ipDetectPath\`: cannot read the script ${path}.`, { cause: error });
  }
}

async function filesForGenconf(folder: string | undefined): Promise<readonly FileToCopy[]> {
  return folder === undefined ? [] : accepted(await readGenconfFolder(resolve(folder))).files;
}

const filesForMasters = async ({ source, target }: CopyToMaster): Promise<readonly FileToCopy[]> =>
  accepted(await listCopyToMaster({ source: resolve(source), target }));

/** Saves logs that explain a failure in the cluster's folder, because the machines may be gone the next moment. */
export async function keepFailureLogs(
  { backend, record, runtime }: OpenCluster,
  connections: ConnectionPool,
): Promise<void> {
  const request = { cluster: record, connections, directory: record.directory };
  await saveFailureLogs(backend, request, runtime, AbortSignal.timeout(failureLogsLimitMs));
}

function tooSlow({ record }: OpenCluster): ClusterError {
  return new ClusterError(
    "deadline-passed",
    `Starting the installation on cluster "${record.id}" exceeded its time limit.`,
    {
      hint: "Allow more time with `timeout`.",
      facts: { cluster: record.id },
    },
  );
}
