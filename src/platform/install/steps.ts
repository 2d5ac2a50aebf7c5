/** The steps of an installation. Each is one function. cluster/create.ts puts them in order. */

import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  type NodeTraits,
  nodeReference,
} from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { type Semaphore, createSemaphore } from "../../system/concurrency.ts";
import { type LocalArtifact, downloadArtifact } from "../artifact/artifact-download.ts";
import { type ArtifactVersion, licenseNeeded } from "../artifact/artifact-version.ts";
import {
  type GenconfFacts,
  bootstrapOriginOf,
  genconfFiles,
  privateAddressOf,
} from "../configuration/install-configuration.ts";
import { layoutNeeds, layouts } from "../layouts/find-layout.ts";
import { type WorkPaths, installWork } from "../install-paths.ts";
import type { Layout } from "../layouts/layout.ts";
import { readResolvers } from "../resolvers.ts";
import { bootstrapPort, serve as servePhase } from "./bootstrap/serve.ts";
import {
  endedBadly,
  checkVersion as versionPhase,
  type FetchArtifact,
  fetchArtifact as fetchPhase,
} from "./fetch-artifact.ts";
import { generate } from "./genconf.ts";
import type { InstallPlan, PlanForNodes } from "./install-plan.ts";
import { type Phase, type PhaseWork, runPhase } from "./phase.ts";
import { copyFiles, enforceSelinux, prepareNode } from "./prepare/prepare-node.ts";
import { type InstallSource, startInstall } from "./start-install.ts";

export interface Installation {
  readonly plan: PlanForNodes;
  /** Limits the scripts that run on several nodes concurrently. Scripts for a single node wait only for that node. */
  readonly slots: Semaphore;
  /** A part of the bootstrap server's path; see BootstrapServer. */
  readonly secret: string;
  /** The layout for which nodes are prepared first. genconf's output shows the true one. */
  readonly firstLayout: Layout;
  /** Where the artifact is on the first master. */
  readonly paths: WorkPaths;
}

const nodesAtOnce = 32;

/** Sends nothing yet. */
export function openInstallation(
  { progress }: Pick<PhaseWork, "progress">,
  plan: InstallPlan,
  traits: NodeTraits,
  paths: WorkPaths = installWork,
): Installation {
  const secret = randomBytes(16).toString("hex");
  progress.hide(secret);
  const firstLayout = plan.layout ?? layouts[0];
  return {
    plan: { ...plan, ...traits },
    slots: createSemaphore(nodesAtOnce),
    secret,
    firstLayout,
    paths,
  };
}

export const isFirstMaster = (node: NodeRecord): boolean => nodeReference(node) === "master_0";

export const noFirstMaster = ({ id }: ClusterRecord): ClusterError =>
  new ClusterError("machine-failed", `Cluster "${id}" has no first master.`);

/** Prepares a node for a layout's installer: programs, services, SELinux, and the user's files. Safe to repeat. */
export async function prepare(
  work: PhaseWork,
  { plan, slots }: Installation,
  { node, layout }: { readonly node: NodeRecord; readonly layout: Layout },
): Promise<void> {
  await slots.run(async () => runPhase(work, prepareNode(layout, plan), node), work.signal);
  if (plan.selinuxEnforcing) await runPhase(work, enforceSelinux, node);
  if (node.role === "master" && plan.copyToMaster.length > 0)
    await runPhase(work, copyFiles(plan.copyToMaster), node);
}

/** Transfers the artifact to the first master. It may run while that node is being prepared. */
export async function fetchArtifact(
  work: PhaseWork,
  { plan, paths }: Installation,
  { node, untilPrepared }: { readonly node: NodeRecord } & Pick<FetchArtifact, "untilPrepared">,
): Promise<void> {
  await using local = localArtifact(plan, work);
  const phase = fetchPhase({
    artifact: plan.artifact,
    download: local.download,
    untilPrepared,
    paths,
  });
  await runPhase(work, phase, node);
}

/** An artifact on the first master whose version is known. */
export interface FoundArtifact {
  /** The layout that the artifact seems to have; the configuration is first written for it. */
  readonly layout: Layout;
  readonly version: ArtifactVersion;
}

/**
 * Runs the artifact on the prepared first master to get its version. If the artifact's layout is
 * unknown, the node is prepared for the usual one, but some artifacts can't even print their
 * version without Docker. In that case, this prepares the node for a layout with Docker and runs
 * the artifact again.
 */
export async function checkVersion(
  work: PhaseWork,
  { plan, firstLayout, paths }: Installation,
  node: NodeRecord,
): Promise<FoundArtifact> {
  const phase = versionPhase({
    variant: plan.variant,
    sha256: plan.sha256,
    shown: plan.artifact.shown,
    paths,
  });
  try {
    return { layout: firstLayout, version: await runPhase(work, phase, node) };
  } catch (error) {
    if (plan.layout !== undefined || !endedBadly(error)) throw error;
    const layout = layouts.find((each) => layoutNeeds(each, "docker"));
    if (layout === undefined) throw error;
    await runPhase(work, prepareNode(layout, plan), node);
    return { layout, version: await runPhase(work, phase, node) };
  }
}

interface OnCluster {
  /** All nodes have their addresses. */
  readonly cluster: ClusterRecord;
}

/**
 * Writes the configuration and generates the installer on the first master. Returns the layout that
 * genconf's output shows. If that isn't the expected layout, and needs other keys in the
 * configuration, genconf runs again.
 */
export async function configure(
  work: PhaseWork,
  installation: Installation,
  { cluster, artifact }: OnCluster & { readonly artifact: FoundArtifact },
): Promise<Layout> {
  const { connections, signal } = work;
  const { plan } = installation;
  const release = artifact.version.version;
  warnOfLicense(work, plan, release);
  const node = firstMasterOf(cluster);
  const bootstrapUrl = bootstrapUrlOf(installation, node);
  const resolvers = await readResolvers(await connections.connect(node, signal), signal);
  const generateFor = async (layout: Layout): Promise<Layout> => {
    const facts: GenconfFacts = { resolvers, bootstrapUrl, layout, release };
    const found = await runPhase(work, generate(await genconfFiles(plan, cluster, facts)), node);
    // The artifact's head may say more about the layout than its name does.
    return found.name === layout.name ? layout : found;
  };
  const layout = await generateFor(artifact.layout);
  const ownKeys = (of: Layout): unknown => of.baseConfiguration({ ...plan, release });
  if (isDeepStrictEqual(ownKeys(layout), ownKeys(artifact.layout))) return layout;
  return generateFor(layout);
}

/** No installation takes longer. */
const longestInstallationSeconds = 2 * 60 * 60;

/** Serves the generated installer to the cluster's nodes, from the first master. Returns the URL. */
export async function serve(
  work: PhaseWork,
  installation: Installation,
  { cluster, layout }: OnCluster & { readonly layout: Layout },
): Promise<string> {
  const served = {
    nodes: cluster.nodes,
    script: layout.installScript,
    longestSeconds: longestInstallationSeconds,
  };
  return serveTo(work, installation, { cluster, ...served });
}

/** Files that some nodes fetch from the first master. */
export interface Served extends OnCluster {
  /** The files are served until all of these nodes have reported that they are done. */
  readonly nodes: readonly NodeRecord[];
  /** A file that is served, relative to `genconf/serve`. */
  readonly script: string;
  readonly longestSeconds: number;
}

/** Returns the URL. */
export async function serveTo(
  work: PhaseWork,
  installation: Installation,
  served: Served,
): Promise<string> {
  const node = firstMasterOf(served.cluster);
  const server = {
    address: privateAddressOf(node),
    port: bootstrapPort(layouts),
    secret: installation.secret,
    nodeAddresses: served.cluster.nodes.map(privateAddressOf),
    expectedAddresses: served.nodes.map(privateAddressOf),
    installScript: served.script,
    folder: installation.paths.serve,
    longestSeconds: served.longestSeconds,
  };
  await runPhase(work, servePhase(server), node);
  return bootstrapUrlOf(installation, node);
}

export interface InstallerSource extends InstallSource {
  readonly layout: Layout;
}

/** Starts the installation on a prepared node. It continues by itself. */
export async function startInstallation(
  work: PhaseWork,
  { slots }: Installation,
  { node, source }: { readonly node: NodeRecord; readonly source: InstallerSource },
): Promise<void> {
  const phase: Phase = startInstall(source.layout, source);
  await slots.run(async () => runPhase(work, phase, node), work.signal);
}

export function bootstrapUrlOf(
  { secret }: Pick<Installation, "secret">,
  firstMaster: NodeRecord,
): string {
  return `${bootstrapOriginOf(firstMaster)}/${secret}`;
}

export function firstMasterOf(cluster: ClusterRecord): NodeRecord {
  const node = cluster.nodes.find(isFirstMaster);
  if (node === undefined) throw noFirstMaster(cluster);
  return node;
}

function warnOfLicense(
  { progress }: Pick<PhaseWork, "progress">,
  { variant, configuration }: PlanForNodes,
  version: string,
): void {
  if (variant !== "enterprise" || !licenseNeeded(version)) return;
  if (configuration.kind === "complete" || configuration.licenseKey !== undefined) return;
  if ("license_key_contents" in configuration.values) return;
  progress.warn(
    `Enterprise ${outside(version)} needs a license key, but none was given. Pass one with ${optionName("licenseKey")}.`,
  );
}

const downloadLimitMs = 60 * 60_000;
const stallLimitMs = 30_000;

/** The artifact on this machine: downloaded at most once, no matter how often it is sent, and removed in the end. */
function localArtifact(plan: InstallPlan, { clock }: PhaseWork) {
  const held: { artifact?: LocalArtifact } = {};
  const download: FetchArtifact["download"] = async (onProgress, signal) => {
    held.artifact ??= await downloadArtifact(
      plan.artifact,
      {
        clock,
        workspaceFolder: plan.workspaceFolder,
        sha256: plan.sha256,
        deadlineMs: clock.now() + downloadLimitMs,
        stallLimitMs,
        onProgress,
      },
      signal,
    );
    return held.artifact;
  };
  return {
    download,
    [Symbol.asyncDispose]: async () => {
      await held.artifact?.[Symbol.asyncDispose]();
    },
  };
}
