import { ClusterError } from "../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../model/cluster-record.ts";
import { layoutOf } from "../platform/layouts/find-layout.ts";
import { askNode } from "../platform/readiness/ask-nodes.ts";
import type { NodeReport } from "../platform/readiness/node-question.ts";
import { createKnownHosts } from "../ssh/openssh-files.ts";
import { creationFiles } from "../store/creation-folder.ts";
import type { Runtime } from "../system/runtime.ts";
import { assertKeyIsHere, openMaskedConnections } from "./connections.ts";

export interface WebUi {
  readonly url: string;
  /** URL of the certificate of the cluster's own authority; undefined without TLS. */
  readonly authorityUrl: string | undefined;
}

const askLimitMs = 15_000;

/** Returns the URL of the web UI on the first running master, as far as it can be known without asking the node. */
export function expectedWebUrl(cluster: ClusterRecord): string | undefined {
  const master = firstMaster(cluster);
  return master === undefined ? undefined : urlOf(master, expectsTls(cluster));
}

/** Uses the configuration or, if it isn't known, the variant's default. */
const expectsTls = ({ webScheme, variant }: ClusterRecord): boolean =>
  webScheme === undefined ? variant === "enterprise" : webScheme === "https";

/**
 * Returns the same, but asks the node whether TLS is on, if the platform is running there. Anyone in a cloud account can make a machine look like the
 * cluster's master, so the address must be one for which this machine has pinned a host key. Throws `key-missing`, and `host-key-changed` if another
 * machine answers there.
 */
export async function findWebUi(cluster: ClusterRecord, runtime: Runtime, signal: AbortSignal): Promise<WebUi> {
  const master = firstMaster(cluster);
  if (master === undefined) {
    throw new ClusterError("node-not-found", `Cluster "${cluster.id}" has no running master.`, {
      hint: "Run the inspect command to see its nodes.",
      facts: { cluster: cluster.id },
    });
  }
  await assertPinned(cluster, master);
  const report = await nodeReport(cluster, master, runtime, signal);
  const isTlsEnabled = report?.isTlsEnabled ?? expectsTls(cluster);
  const layout = layoutOf(report?.layout);
  const url = urlOf(master, isTlsEnabled);
  return { url, authorityUrl: isTlsEnabled ? new URL(layout.caPath, url).href : undefined };
}

const firstMaster = (cluster: ClusterRecord): NodeRecord | undefined =>
  cluster.nodes.find((node) => node.role === "master" && node.state === "running" && node.web.host !== "");

/** The URL class drops the scheme's default port. */
function urlOf({ web }: NodeRecord, isTlsEnabled: boolean): string {
  return new URL(isTlsEnabled ? `https://${web.host}:${web.httpsPort}/` : `http://${web.host}:${web.httpPort}/`).href;
}

async function assertPinned(cluster: ClusterRecord, master: NodeRecord): Promise<void> {
  await assertKeyIsHere(cluster);
  const { knownHosts } = creationFiles(cluster.directory);
  const { host, port } = master.ssh;
  if ((await createKnownHosts(knownHosts).expected(host, port)) !== undefined) return;
  const name = nodeReference(master);
  throw new ClusterError("key-missing", `The host key of ${name} of cluster "${cluster.id}" is not on this machine.`, {
    hint: "The cluster is still being created, or another machine claims to be that node. Run the inspect command to see its address.",
    facts: { cluster: cluster.id, node: name, address: host },
  });
}

async function nodeReport(
  cluster: ClusterRecord,
  master: NodeRecord,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<NodeReport | undefined> {
  await using connections = openMaskedConnections(cluster, runtime);
  const question = { connections, clock: runtime.clock, limitMs: askLimitMs, looks: 1, lookPauseMs: 0 };
  return (await askNode(master, question, signal)).report;
}
