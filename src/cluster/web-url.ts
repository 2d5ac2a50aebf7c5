import type { ClusterRecord } from "./record.ts";

/** The web UI on the first master that has an address: https for enterprise, http for open source. */
export function webUrl(cluster: ClusterRecord): string | undefined {
  const master = cluster.nodes.find(
    (node) => node.role === "master" && node.state === "running" && node.web.host !== "",
  );
  if (master === undefined) return undefined;
  const { host, httpPort, httpsPort } = master.web;
  const url = cluster.variant === "enterprise" ? `https://${host}:${httpsPort}/` : `http://${host}:${httpPort}/`;
  // The URL class drops a port that is the scheme's own.
  return new URL(url).href;
}
