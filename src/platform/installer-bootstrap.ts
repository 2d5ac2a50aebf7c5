import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";
import { nodeReference } from "../model/cluster-record.ts";
import { ClusterError } from "../errors.ts";
import type { LocalArtifact } from "./artifact/artifact-download.ts";
import { downloadArtifact } from "./artifact/artifact-download.ts";
import type { ArtifactVersion } from "./artifact/artifact-version.ts";
import { licenseNeeded } from "./artifact/artifact-version.ts";
import type { GenconfFacts } from "./configuration/install-configuration.ts";
import { bootstrapOriginOf, genconfFiles, privateAddressOf } from "./configuration/install-configuration.ts";
import type { InstallPlan } from "./install-plan.ts";
import type { Layout } from "./layout.ts";
import { layoutNeeds, layoutOf, layouts } from "./layouts/find-layout.ts";
import { checkVersion, endedBadly } from "./install/check-version.ts";
import type { FetchArtifact } from "./install/fetch-artifact.ts";
import { fetchArtifact } from "./install/fetch-artifact.ts";
import { generate } from "./install/genconf.ts";
import type { PhaseRuntime } from "./install/phase.ts";
import { runPhase } from "./install/phase.ts";
import { prepareNode } from "./install/prepare-node.ts";
import { bootstrapPort, serve } from "./install/serve.ts";
import { readResolvers } from "./resolvers.ts";

/** An artifact on the first master whose version is known. */
export interface ArtifactOnNode {
  /** The layout for which the nodes were prepared; genconf's output decides in the end. */
  readonly preparedFor: Layout;
  /** The layout that the artifact seems to have; the configuration is first written for it. */
  readonly expected: Layout;
  readonly version: ArtifactVersion;
}

export interface ArtifactPreparation {
  readonly plan: InstallPlan;
  readonly runtime: PhaseRuntime;
  /** The first master. */
  readonly node: NodeRecord;
  /** Resolves when the node is prepared; the artifact is fetched in the meantime. */
  readonly prepared: Promise<void>;
}

/** Transfers the artifact to the first master and reads its version. */
export async function prepareArtifact(request: ArtifactPreparation, signal: AbortSignal): Promise<ArtifactOnNode> {
  const { plan, runtime, node, prepared } = request;
  const { artifact } = plan;
  await using local = localArtifact(request);
  await runPhase(fetchArtifact({ artifact, download: local.download, prepared }), node, runtime, signal);
  await prepared;
  const preparedFor = layoutOf(plan.layoutHint);
  return { preparedFor, ...(await askVersion(request, preparedFor, signal)) };
}

export interface BootstrapRequest {
  readonly plan: InstallPlan;
  readonly runtime: PhaseRuntime;
  readonly cluster: ClusterRecord;
  readonly artifact: Promise<ArtifactOnNode>;
}

/** The source that the nodes install from. */
export interface Bootstrap {
  readonly layout: Layout;
  readonly preparedFor: Layout;
  readonly url: string;
  /** As reported by the artifact's `--version`. */
  readonly release: string;
}

/** Generates the installer on the first master and serves it. It needs every node's address, but nothing else from the other nodes. */
export async function prepareBootstrap(request: BootstrapRequest, signal: AbortSignal): Promise<Bootstrap> {
  const { plan, runtime, cluster, artifact } = request;
  const node = firstMasterOf(cluster);
  const secret = randomBytes(16).toString("hex");
  runtime.progress.hide(secret);
  const url = `${bootstrapOriginOf(node)}/${secret}`;
  const { preparedFor, expected, version } = await artifact;
  warnOfLicense(plan, version, runtime);
  const connection = await runtime.connections.connect(node, signal);
  const resolvers = await readResolvers(connection, signal);
  const facts = { resolvers, bootstrapUrl: url, layout: expected, release: version.version };
  const layout = await generateInstaller(request, facts, signal);
  const server = {
    address: privateAddressOf(node),
    port: bootstrapPort(layouts),
    secret,
    nodeAddresses: cluster.nodes.map(privateAddressOf),
    installScript: layout.installScript,
  };
  await runPhase(serve(server), node, runtime, signal);
  return { layout, preparedFor, url, release: version.version };
}

/**
 * Returns the layout that genconf's output shows. If it isn't the expected layout, the configuration may lack keys of its own; then genconf runs
 * again.
 */
async function generateInstaller(
  { plan, runtime, cluster }: BootstrapRequest,
  expected: GenconfFacts,
  signal: AbortSignal,
): Promise<Layout> {
  const generateFor = async (facts: GenconfFacts): Promise<Layout> => {
    const files = await genconfFiles(plan, cluster, facts);
    return runPhase(generate(files), firstMasterOf(cluster), runtime, signal);
  };
  const layout = await generateFor(expected);
  const ownKeys = (of: Layout): unknown => of.baseConfiguration({ ...plan, release: expected.release });
  if (isDeepStrictEqual(ownKeys(layout), ownKeys(expected.layout))) return layout;
  return generateFor({ ...expected, layout });
}

function firstMasterOf(cluster: ClusterRecord): NodeRecord {
  const node = cluster.nodes.find(isFirstMaster);
  if (node !== undefined) return node;
  throw new ClusterError("machine-failed", `Cluster "${cluster.id}" has no first master.`);
}

export const isFirstMaster = (node: NodeRecord): boolean => nodeReference(node) === "master_0";

/**
 * Without a hint, the nodes are prepared for the usual layout. Some artifacts can't even print their version without Docker. In that case this
 * prepares the node for such a layout and runs the artifact again.
 */
async function askVersion(
  { plan, runtime, node }: ArtifactPreparation,
  expected: Layout,
  signal: AbortSignal,
): Promise<Pick<ArtifactOnNode, "expected" | "version">> {
  const phase = checkVersion({ variant: plan.variant, sha256: plan.sha256, shown: plan.artifact.shown });
  try {
    return { expected, version: await runPhase(phase, node, runtime, signal) };
  } catch (error) {
    if (plan.layoutHint !== undefined || !endedBadly(error)) throw error;
    const first = layouts.find((layout) => layoutNeeds(layout, "docker"));
    if (first === undefined) throw error;
    await runPhase(prepareNode(first, plan), node, runtime, signal);
    return { expected: first, version: await runPhase(phase, node, runtime, signal) };
  }
}

function warnOfLicense(
  { variant, configuration }: InstallPlan,
  { version }: ArtifactVersion,
  { progress }: PhaseRuntime,
): void {
  if (variant !== "enterprise" || !licenseNeeded(version)) return;
  if (configuration.kind === "complete" || configuration.licenseKey !== undefined) return;
  if ("license_key_contents" in configuration.values) return;
  progress.warn(`Enterprise ${version} needs a license key, but none was given. Pass one with \`licenseKey\`.`);
}

const downloadLimitMs = 60 * 60_000;
const stallLimitMs = 30_000;

/** The artifact on this machine: downloaded at most once, no matter how often it is sent, and removed in the end. */
function localArtifact({ plan, runtime: { clock } }: ArtifactPreparation): LocalSource {
  const held: { artifact?: LocalArtifact } = {};
  return {
    download: async (onProgress, signal) => {
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
    },
    [Symbol.asyncDispose]: async () => {
      await held.artifact?.[Symbol.asyncDispose]();
    },
  };
}

interface LocalSource extends AsyncDisposable {
  readonly download: FetchArtifact["download"];
}
