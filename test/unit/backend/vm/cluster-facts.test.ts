import { expect, test } from "bun:test";
import { parseClusterFacts } from "../../../../src/backend/vm/cluster-facts.ts";
import { toCluster } from "../../../../src/backend/vm/records.ts";
import { hostileTexts, textsIn, unprintable } from "../../../support/hostile-text.ts";

const directory = "/state/vm/default-0123456789abcdef";
const node = {
  id: "vm-01234567-0",
  role: "master",
  index: 0,
  privateAddress: "10.0.0.1",
  ports: { ssh: 4000, http: 4001, https: 4002 },
};
const facts = {
  schemaVersion: 1,
  clusterId: "default",
  creationId: "0123456789abcdef",
  variant: "oss",
  distribution: "own image",
  counts: { master: 1, agent: 0, public_agent: 0 },
  webUi: "http",
  createdAt: "2026-01-01T00:00:00.000Z",
  expiresAt: "2026-01-01T04:00:00.000Z",
  createdBy: "0.0.0+abc",
  bootId: "6f3a",
  nodes: [node],
};

test("cluster.json is read back, also one that lacks what it may lack", () => {
  expect(parseClusterFacts(facts, directory)).toEqual(facts as never);
  const { webUi: _, createdAt: __, bootId: ___, expiresAt: ____, ...least } = facts;
  expect(parseClusterFacts(least, directory)).toMatchObject(least);
});

test("it must be its own folder's", () => {
  expect(parseClusterFacts(facts, "/state/vm/other-0123456789abcdef")).toBeUndefined();
  expect(parseClusterFacts(facts, "/state/vm/default-fedcba9876543210")).toBeUndefined();
});

const changes: readonly (readonly [string, (text: unknown) => object])[] = [
  ...Object.keys(facts).map((key) => [key, (text: unknown) => ({ ...facts, [key]: text })] as const),
  ...Object.keys(node).map(
    (key) => [`node's ${key}`, (text: unknown) => ({ ...facts, nodes: [{ ...node, [key]: text }] })] as const,
  ),
  ["port", (text) => ({ ...facts, nodes: [{ ...node, ports: { ...node.ports, ssh: text } }] })],
  ["second node", (text) => ({ ...facts, nodes: [node, text] })],
  ["counts of masters", (text) => ({ ...facts, counts: { ...facts.counts, master: text } })],
];

// Shows R135.
test.each(changes)("whatever its %s is, what is read has the model's shapes", (_, change) => {
  for (const found of [...hostileTexts(29, 1000), null, 7, -1, {}, [], [[]], { length: 1 }]) {
    const read = parseClusterFacts(change(found), directory);
    if (read === undefined) continue;
    const cluster = toCluster({ directory, facts: read }, ["running"], { isRestarted: false, isAbandoned: false });
    expect([cluster.id, cluster.creationId]).toEqual(["default", "0123456789abcdef"]);
    for (const text of textsIn({ cluster, read })) expect(text).not.toMatch(unprintable);
    for (const each of cluster.nodes) expect(each.ssh.port).toBeWithin(1, 65_536);
  }
});

test("two nodes of one name are none", () => {
  expect(parseClusterFacts({ ...facts, nodes: [node, node] }, directory)).toBeUndefined();
});
