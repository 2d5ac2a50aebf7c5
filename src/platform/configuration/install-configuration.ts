import { constants, realpath, stat } from "node:fs/promises";
import { isAbsolute, posix } from "node:path";
import { ClusterError } from "../../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { type Checked, problem } from "../../model/checked.ts";
import { factsOf } from "../../system/files/listed-file.ts";
import { isAccessible, unreachable } from "../../system/files/private-file.ts";
import { bootstrapPort } from "../install/bootstrap/serve.ts";
import type { GenconfFile } from "../install/genconf.ts";
import type { AddedConfiguration, InstallPlan, PlanForNodes } from "../install/install-plan.ts";
import { layouts } from "../layouts/find-layout.ts";
import type { Layout } from "../layouts/layout.ts";
import { type FileToCopy, configurationText, listFilesToCopy } from "./configuration-file.ts";
import { type Configuration, baseConfiguration, mergeConfiguration } from "./configuration.ts";

export function privateAddressOf(node: NodeRecord): string {
  if (node.privateAddress !== undefined) return node.privateAddress;
  throw new ClusterError(
    "machine-failed",
    `${nodeReference(node)} (${node.id}) has no private address.`,
  );
}

/**
 * The bootstrap server on the first master. It serves genconf's output below a path that only the
 * cluster's nodes learn.
 */
export const bootstrapOriginOf = (firstMaster: NodeRecord): string =>
  `http://${privateAddressOf(firstMaster)}:${bootstrapPort(layouts)}`;

/** Facts that are known only once the first master is up and the artifact has reported its version. */
export interface GenconfFacts {
  /** IPv4 addresses of the first master's name servers. */
  readonly resolvers: readonly string[];
  /** The bootstrap server's origin, with the secret path below it. */
  readonly bootstrapUrl: string;
  /** The layout whose own keys the configuration gets. */
  readonly layout: Layout;
  /** As reported by the artifact's `--version`. */
  readonly release: string;
}

/**
 * Returns all files for `genconf/`. The configuration may hold the license and password hashes, so
 * only root may read it.
 */
export async function genconfFiles(
  plan: PlanForNodes,
  cluster: ClusterRecord,
  found: GenconfFacts,
): Promise<readonly GenconfFile[]> {
  const own = new Set(plan.genconfFiles.map((file) => file.target));
  const detectors: GenconfFile[] = [
    { path: "ip-detect", source: { text: plan.ipDetect }, mode: 0o755 },
    ...(plan.ipDetectPublic === undefined
      ? []
      : [{ path: "ip-detect-public", source: { text: plan.ipDetectPublic }, mode: 0o755 }]),
  ];
  const configuration = withBootstrapUrl(
    configurationOf(plan, cluster, found),
    new URL(found.bootstrapUrl),
  );
  const text = await configurationText(configuration, found.layout.configurationFormat);
  return [
    { path: "config.yaml", source: { text }, mode: 0o600 },
    ...detectors.filter((file) => !own.has(file.path)),
    ...plan.genconfFiles.map((file) => ({ path: file.target, source: { file }, mode: file.mode })),
  ];
}

function configurationOf(
  plan: PlanForNodes,
  cluster: ClusterRecord,
  found: GenconfFacts,
): Configuration {
  const { configuration, variant, nodesKeepTime } = plan;
  const { resolvers, layout, release } = found;
  const ownKeys = layout.baseConfiguration({ variant, release, nodesKeepTime });
  if (configuration.kind === "complete" && layout.configurationFormat === "yaml")
    return { ...ownKeys, ...configuration.values };
  const hasPublicDetector =
    plan.ipDetectPublic !== undefined ||
    plan.genconfFiles.some((file) => file.target === "ip-detect-public");
  const licenseKey = configuration.kind === "added" ? configuration.licenseKey : undefined;
  const base = baseConfigurationOf(cluster, { variant, licenseKey, hasPublicDetector, resolvers });
  if (layout.configurationFormat === "json") return separateConfiguration(base, configuration);
  const securityMode = configuration.kind === "added" ? configuration.securityMode : undefined;
  return mergeConfiguration({ ...base, ...ownKeys }, configuration.values, securityMode);
}

/** A platform that is a folder gets the user's configuration in a separate mapping, without the keys of the base. */
function separateConfiguration(
  base: Configuration,
  { kind, values }: PlanForNodes["configuration"],
): Configuration {
  if (kind === "added") return { ...base, [extraKey]: values };
  const entries = Object.entries(values);
  const [ofBase, extra] = [true, false].map((isBase) =>
    Object.fromEntries(entries.filter(([key]) => isBase === Object.hasOwn(base, key))),
  );
  return { ...base, ...ofBase, [extraKey]: extra };
}

/** The key of `config.yaml` whose value becomes the nodes' `config.json`. */
const extraKey = "extra_config";

/**
 * The base configuration, which the library's users see, has the bootstrap server's URL without its
 * secret path. Any other URL is the user's own server and stays.
 */
function withBootstrapUrl(configuration: Configuration, url: URL): Configuration {
  const given = configuration["bootstrap_url"];
  const isOurs =
    typeof given === "string" &&
    given.startsWith(url.origin) &&
    /^\/*$/.test(given.slice(url.origin.length));
  return isOurs ? { ...configuration, bootstrap_url: url.href } : configuration;
}

/** Facts that the cluster's record doesn't hold. */
interface BaseFacts extends Pick<InstallPlan, "variant">, Pick<AddedConfiguration, "licenseKey"> {
  /** Whether genconf gets a script for the public address. */
  readonly hasPublicDetector: boolean;
  /** The first master's name servers. */
  readonly resolvers: readonly string[];
}

export function baseConfigurationOf(cluster: ClusterRecord, facts: BaseFacts): Configuration {
  const [firstMaster] = cluster.nodes;
  if (firstMaster === undefined)
    throw new ClusterError("machine-failed", `Cluster "${cluster.id}" has no nodes.`);
  return baseConfiguration({
    clusterName: cluster.id,
    variant: facts.variant,
    nodes: cluster.nodes.map((node) => ({
      role: node.role,
      privateAddress: privateAddressOf(node),
    })),
    bootstrapUrl: bootstrapOriginOf(firstMaster),
    resolvers: facts.resolvers,
    ipDetectPublicFile: facts.hasPublicDetector ? "genconf/ip-detect-public" : undefined,
    licenseKey: facts.licenseKey,
  });
}

export interface CopyToMaster {
  /** Absolute path on this machine. */
  readonly source: string;
  /** Absolute path on the masters; a trailing `/` means "into this folder". */
  readonly target: string;
}

/** Parses `/absolute/local/path:/remote/path`. It splits at the last `:/`, so that a local path may contain one. */
export function parseCopyToMaster(text: string): Checked<CopyToMaster> {
  const colon = text.lastIndexOf(":/");
  if (colon < 0) {
    const reason = text.includes(":")
      ? "the path on the master must be absolute"
      : "use the form /local/path:/remote/path";
    return problem(`${outside(text)}: ${reason}`);
  }
  const source = text.slice(0, colon);
  if (!isAbsolute(source)) return problem(`${outside(text)}: the local path must be absolute`);
  return { value: { source, target: posix.normalize(text.slice(colon + 1)) } };
}

export async function listCopyToMaster(
  { source, target }: CopyToMaster,
  signal: AbortSignal,
): Promise<Checked<readonly FileToCopy[]>> {
  const file = await realpath(source).catch(() => source);
  const information = await stat(file).catch(unreachable);
  if (typeof information === "string") return problem(`${source} ${information}`);
  if (information.isDirectory()) return listFilesToCopy(source, target, signal);
  if (!information.isFile()) return problem(`${source} is neither a file nor a folder`);
  if (!(await isAccessible(file, constants.R_OK)))
    return problem(`this user may not read ${source}`);
  const path = target.endsWith("/") ? target + posix.basename(source) : target;
  return {
    value: [{ ...factsOf(file, information), target: path, mode: information.mode & 0o777 }],
  };
}
