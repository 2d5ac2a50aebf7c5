import { ClusterError } from "../errors.ts";
import { runCommand } from "../references.ts";
import { noRunningMaster } from "./find-cluster.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  type WebEndpoint,
  nodeReference,
  webEndpointOf,
  webPortsOf,
} from "../model/cluster-record.ts";
import { layouts } from "../platform/layouts/find-layout.ts";
import type { Layout } from "../platform/layouts/layout.ts";
import { askLayout } from "../platform/readiness/ask-node.ts";
import { type NodeReport, hasTls, reportedLayout } from "../platform/readiness/node-question.ts";
import { createKnownHosts } from "../ssh/openssh-files.ts";
import { creationFiles } from "../store/creation-folder.ts";
import type { Work } from "../system/runtime.ts";
import { assertKeyIsHere, forwardToNode, openMaskedConnections } from "./connections.ts";

export interface FoundWebUi {
  readonly url: string;
  /** The node, if the URL doesn't lead there from here; absent: it does. */
  readonly beyond?: NodeRecord;
  /**
   * Where the certificate of the cluster's own authority is: a URL, or a file on the masters;
   * undefined without TLS.
   */
  readonly authority: string | undefined;
}

/** Returns the URL of the web UI on the first running master, as far as it can be known without asking the node. */
export function expectedWebUrl(cluster: ClusterRecord): string | undefined {
  const master = firstMaster(cluster);
  const endpoint = expectedEndpoint(cluster);
  if (master === undefined || master.ssh.through !== undefined) return undefined;
  return endpoint === undefined ? undefined : urlOf(master, endpoint);
}

export const hasNoWebUi = (cluster: ClusterRecord): boolean =>
  expectedEndpoint(cluster) === undefined;

/** Returns the endpoint that was known at the creation or else the variant's default. */
function expectedEndpoint({ webUi, variant }: ClusterRecord): WebEndpoint | undefined {
  if (webUi !== undefined) return webEndpointOf(webUi);
  return variant === "none"
    ? undefined
    : webEndpointOf(variant === "enterprise" ? "https" : "http");
}

/**
 * Finds the web UI, and asks the first master whether TLS is on, if the platform is running there. Anyone in a cloud
 * account can make a machine look like the cluster's master, so the address must be one for which this machine has
 * pinned a host key. Undefined if the platform has no web UI. Throws `key-missing`, and `host-key-changed` if another
 * machine answers there.
 */
export async function findWebUi(
  work: Work,
  cluster: ClusterRecord,
): Promise<FoundWebUi | undefined> {
  const master = firstMaster(cluster);
  if (master === undefined) throw noRunningMaster(cluster);
  await assertPinned(cluster, master);
  return webUiOf(cluster, master, await nodeReport(work, cluster, master));
}

/** Returns the web UI on the master, as far as the master's report says where it is. */
export function webUiOf(
  cluster: ClusterRecord,
  master: NodeRecord,
  report: NodeReport | undefined,
): FoundWebUi | undefined {
  const layout = report && reportedLayout(report);
  const { web } = layout ?? layouts[0];
  const endpoint =
    layout === undefined ? expectedEndpoint(cluster) : endpointOf(cluster, layout, report);
  if (endpoint === undefined) return undefined;
  const url = urlOf(master, endpoint);
  const authority = endpoint.scheme === "https" ? authorityOf(web, url) : undefined;
  return { url, authority, ...(master.ssh.through !== undefined && { beyond: master }) };
}

/** The node's own answer takes precedence over the expected endpoint. */
function endpointOf(
  cluster: ClusterRecord,
  layout: Layout,
  report: NodeReport | undefined,
): WebEndpoint | undefined {
  const { web } = layout;
  if (web === undefined || web.endpoint !== undefined) return web?.endpoint;
  const isTlsEnabled = report && hasTls(layout, report);
  return isTlsEnabled === undefined
    ? expectedEndpoint(cluster)
    : webEndpointOf(isTlsEnabled ? "https" : "http");
}

function authorityOf(web: Layout["web"], url: string): string | undefined {
  if (web?.authority === undefined) return undefined;
  const { authority } = web;
  return "file" in authority
    ? `${authority.file} on the masters`
    : new URL(authority.path, url).href;
}

const firstMaster = (cluster: ClusterRecord): NodeRecord | undefined =>
  cluster.nodes.find(
    (node) => node.role === "master" && node.state === "running" && node.web.host !== "",
  );

/** The URL class drops the scheme's default port. */
function urlOf({ web }: NodeRecord, { scheme, path }: WebEndpoint): string {
  const port = scheme === "https" ? web.httpsPort : web.httpPort;
  return new URL(path, `${scheme}://${web.host}:${port}/`).href;
}

/** Where the node can't be reached, leads a port of 127.0.0.1 there, until it is disposed of. */
export async function openWayTo(
  work: Work,
  cluster: ClusterRecord,
  { url, authority, beyond: node }: FoundWebUi,
) {
  if (node === undefined) return undefined;
  const { protocol, origin, port: given } = new URL(url);
  const port = Number(given) || webPortsOf(undefined)[protocol === "https:" ? "https" : "http"];
  const forward = await forwardToNode(work, cluster, { node, port, localPort: 0 });
  const fromHere = (text: string): string =>
    text.replace(origin, `${protocol}//127.0.0.1:${forward.localPort}`);
  return {
    url: fromHere(url),
    authority: authority && fromHere(authority),
    [Symbol.asyncDispose]: () => forward[Symbol.asyncDispose](),
  };
}

async function assertPinned(cluster: ClusterRecord, master: NodeRecord): Promise<void> {
  await assertKeyIsHere(cluster);
  const { knownHosts } = creationFiles(cluster.directory);
  const { host, port } = master.ssh;
  if ((await createKnownHosts(knownHosts).expected(host, port)) !== undefined) return;
  const name = nodeReference(master);
  throw new ClusterError(
    "key-missing",
    `The host key of ${name} of cluster "${cluster.id}" is not on this computer.`,
    {
      hint: `The cluster is still being created, or another machine claims to be that node. ${runCommand("inspect")} to see its address.`,
      facts: { cluster: cluster.id, node: name, address: host },
    },
  );
}

async function nodeReport(
  work: Work,
  cluster: ClusterRecord,
  master: NodeRecord,
): Promise<NodeReport | undefined> {
  await using connections = openMaskedConnections(cluster, work);
  return await askLayout(master, { connections }, work.signal);
}
