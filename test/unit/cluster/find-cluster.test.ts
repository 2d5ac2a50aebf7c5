import { expect, test } from "bun:test";
import type { LocalPart } from "../../../src/backend/contract.ts";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import {
  findCluster,
  findNode,
  findNodes,
  nodeNamesOf,
  nodeSelectorProblem,
} from "../../../src/cluster/find-cluster.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

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

test("where a cluster isn't found, it may have ended, so what such clusters have left is removed", async () => {
  const calls: string[] = [];
  const backend = {
    find: async () => undefined,
    local: { removeExpired: async () => void calls.push("removed") } as unknown as LocalPart,
  };
  const failure = await failureOf(findCluster(backend, "nightly", neverAborted));
  expect(failure.id).toBe("cluster-not-found");
  expect(failure.facts).toEqual({ cluster: "nightly", elsewhere: [] });
  expect(calls).toEqual(["removed"]);
});

test("a cluster whose folder is a link to another one is not used", async () => {
  await using scratch = await scratchFolder();
  const [own, link] = [join(scratch.path, "own-c1"), join(scratch.path, "nightly-c1")];
  await mkdir(own);
  await symlink(own, link);
  const find = async (directory: string) =>
    findCluster({ find: async () => ({ ...cluster, directory }) }, "nightly", neverAborted);
  expect((await find(own)).directory).toBe(own);
  expect(await failureOf(find(link))).toMatchObject({
    id: "machine-not-set-up",
    facts: { directory: link },
  });
});

test("programs learn where else a cluster is, and where it may be", async () => {
  const unreachable = [{ scope: "eu-west-1", reason: "it timed out" }];
  const findElsewhere = async () => ({ scopes: ["us-east-1"], unreachable });
  const backend = {
    find: async () => undefined,
    scope: { kind: "region", name: "us-west-2", option: "region", findElsewhere },
  };
  expect(await failureOf(findCluster(backend, "nightly", neverAborted))).toMatchObject({
    facts: {
      cluster: "nightly",
      region: "us-west-2",
      elsewhere: ["us-east-1"],
      silent: [{ place: "eu-west-1", reason: "it timed out" }],
    },
  });
});

test("people learn where else such a cluster was made", async () => {
  const notes = ["This computer made one elsewhere."];
  const findElsewhere = async () => ({ scopes: [], unreachable: [], notes });
  const scope = { kind: "engine", name: "docker", option: "engine", findElsewhere };
  const asked = findCluster({ find: async () => undefined, scope }, "nightly", neverAborted);
  expect((await failureOf(asked)).hint).toStartWith("This computer made one elsewhere. Run the");
});

test.each(["master_0", "master-0", "m0", "10.0.0.0"])("a node is found as %s", (name) => {
  expect(findNode(cluster, name).index).toBe(0);
});

test.each([
  ["master_1", 'Node "master_1" of cluster "nightly" has no address.'],
  ["master_2", 'Cluster "nightly" has no node "master_2" (it has terminated: it stopped).'],
  ["master_3", 'Cluster "nightly" has no node "master_3".'],
])("%s cannot be reached, and it says why", (name, message) => {
  expect(() => findNode(cluster, name)).toThrow(
    expect.objectContaining({ id: "node-not-found", message }),
  );
});

test.each([
  [
    "all that have not ended",
    cluster.nodes,
    "The cluster's nodes are master_0, master_1; its groups are all, masters.",
    ["master_0", "master_1"],
  ],
  [
    "the only one",
    [node(0)],
    "The cluster's nodes are master_0; its groups are all, masters.",
    ["master_0"],
  ],
  ["none", [node(2, { state: "ended" })], "The cluster has no nodes.", []],
])("for an unknown node, it names the nodes that exist: %s", (_, nodes, hint, names) => {
  const facts = { cluster: "nightly", node: "agent_9", nodes: names };
  expect(() => findNode({ ...cluster, nodes }, "agent_9")).toThrow(
    expect.objectContaining({ hint, facts }),
  );
});

test("of a node that ended for no known reason, it says nothing more", () => {
  expect(() =>
    findNode({ ...cluster, nodes: [node(0), node(1, { state: "ended" })] }, "master_1"),
  ).toThrow(expect.objectContaining({ message: 'Cluster "nightly" has no node "master_1".' }));
});

const machineId = /^i-[0-9a-f]+$/;

test.each(["master_0", "public_agent_12", "public-agent-12", "192.0.2.1", "i-0abc"])(
  "%s may be a node",
  (text) => {
    expect(nodeSelectorProblem(text, machineId)).toBeUndefined();
  },
);

test.each(["master", "master_01", "agent_12345", "::1", "192.0.2", "0abc", ""])(
  "%j is no node",
  (text) => {
    expect(nodeSelectorProblem(text, machineId)).toBe(
      `"${text}" is not a node: use an IPv4 address, a machine id, or a name such as master_0, agent_0 or public_agent_0`,
    );
  },
);

const mixed: ClusterRecord = {
  ...cluster,
  nodes: [...cluster.nodes, node(0, { id: "m3", role: "agent", privateAddress: "10.0.1.0" })],
};

test.each([
  [["all"], ["m0", "m1", "m3"]],
  [["masters"], ["m0", "m1"]],
  [["agents"], ["m3"]],
  [
    ["agent_0", "master_0", "masters"],
    ["m0", "m1", "m3"],
  ],
  [["10.0.1.0", "m3"], ["m3"]],
])("%p names each node once, in the record's order, without those that ended", (selectors, ids) => {
  expect(findNodes(mixed, selectors).map(({ id }) => id)).toEqual(ids);
});

test.each(["public_agents", "agent_1", "master_2", "constructor"])(
  "%s names no node of the cluster",
  (selector) => {
    expect(() => findNodes(mixed, [selector])).toThrow(
      expect.objectContaining({ id: "node-not-found" }),
    );
  },
);

test("the names of a cluster's nodes can be completed", () => {
  expect(nodeNamesOf(mixed)).toEqual(["master_0", "master_1", "agent_0"]);
});

test("a selector is a node or a group", () => {
  const problems = ["agents", "agent_0", "toString", "everything"].map((text) =>
    nodeSelectorProblem(text, machineId),
  );
  expect(problems.map((problem) => problem === undefined)).toEqual([true, true, false, false]);
});

test.each([
  ["stopped", "start", "Start it", {}],
  ["paused", "resume", "Let it continue", { stateReason: "it was tired" }],
] as const)(
  "a node that is %s is named so, with the command to %s it",
  (state, action, advice, why) => {
    const idle = { ...cluster, nodes: [node(0, { state, ...why })] };
    expect(() => findNode(idle, "m0")).toThrow(
      expect.objectContaining({
        id: "node-stopped",
        message: `master_0 of cluster "nightly" is ${state}${"stateReason" in why ? " (it was tired)" : ""}.`,
        hint: `${advice}: run the command "node ${action} master_0"`,
      }),
    );
    expect(findNodes(idle, ["masters"])).toHaveLength(1);
  },
);

test("a node's name in place of the cluster's id gets a hint for that", async () => {
  const backend = { find: async () => undefined, scope: undefined };
  const failure = await failureOf(findCluster(backend as never, "agent-0", neverAborted));
  expect(failure.id).toBe("cluster-not-found");
  expect(failure.hint).toStartWith("That is the name of a node.");
});

test("a group where one node is needed is named as that, and a list with commas too", () => {
  expect(() => findNode(mixed, "masters")).toThrow(
    expect.objectContaining({
      id: "node-not-found",
      message: expect.stringContaining('has a group "masters", but this takes one node'),
    }),
  );
  expect(nodeSelectorProblem("master_0,master_1", machineId)).toEndWith(
    "; name several nodes one by one, without commas",
  );
});
