import { expect, test } from "bun:test";
import { findNode } from "../../../src/cluster/node-reference.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";

const node = (index: number, changes: Partial<NodeRecord> = {}): NodeRecord => ({
  id: `m${index}`,
  role: "master",
  index,
  state: "running",
  publicAddress: undefined,
  privateAddress: `10.0.0.${index}`,
  ssh: { host: `10.0.0.${index}`, port: 22, user: "root" },
  web: { host: `10.0.0.${index}`, httpPort: 80, httpsPort: 443 },
  ...changes,
});

const cluster: ClusterRecord = {
  id: "nightly",
  creationId: "c1",
  backend: "container",
  region: undefined,
  variant: "oss",
  distribution: "debian-12",
  state: "running",
  createdAt: undefined,
  expiresAt: undefined,
  nodes: [
    node(0),
    node(1, { privateAddress: undefined, ssh: { host: "", port: 22, user: "root" } }),
    node(2, { state: "ended", stateReason: "it stopped" }),
  ],
  directory: "/state/nightly-c1",
};

test.each(["master_0", "m0", "10.0.0.0"])("a node is found as %s", (name) => {
  expect(findNode(cluster, name).index).toBe(0);
});

test.each([
  ["master_1", 'Node "master_1" of cluster "nightly" has no address.'],
  ["master_2", 'Cluster "nightly" has no node "master_2" (it has terminated: it stopped).'],
  ["master_3", 'Cluster "nightly" has no node "master_3".'],
])("%s cannot be reached, and it says why", (name, message) => {
  expect(() => findNode(cluster, name)).toThrow(expect.objectContaining({ id: "node-not-found", message }));
});
