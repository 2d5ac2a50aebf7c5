import type { Runtime } from "../system/runtime.ts";
import { ClusterError } from "../errors.ts";
import { layoutOf } from "../platform/layouts/find-layout.ts";
import { askNode } from "../platform/readiness/ask-nodes.ts";
import type { NodeReport } from "../platform/readiness/node-report.ts";
import { openMaskedConnections } from "./connections/masked-connections.ts";
import { clusterKey } from "./connections/cluster-key.ts";
import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";

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

/** Returns the same, but asks the node whether TLS is on, if this machine can log in and the platform is running there. */
export async function findWebUi(cluster: ClusterRecord, runtime: Runtime, signal: AbortSignal): Promise<WebUi> {
  const master = firstMaster(cluster);
  if (master === undefined) {
    throw new ClusterError("node-not-found", `Cluster "${cluster.id}" has no running master.`, {
      hint: "Run the inspect command to see its nodes.",
      facts: { cluster: cluster.id },
    });
  }
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

async function nodeReport(
  cluster: ClusterRecord,
  master: NodeRecord,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<NodeReport | undefined> {
  if (!(await clusterKey(cluster)).isHere) return undefined;
  await using connections = openMaskedConnections(cluster, runtime);
  const question = { connections, clock: runtime.clock, limitMs: askLimitMs, looks: 1, lookPauseMs: 0 };
  return (await askNode(master, question, signal)).report;
}
