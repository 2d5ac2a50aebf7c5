import { expect, test } from "bun:test";
import {
  type NodeState,
  type Role,
  byRoleAndIndex,
  clusterState,
  countNodes,
  countsText,
  isReachable,
  localClusterState,
  nodeCount,
  nodeReference,
} from "../../../src/model/cluster-record.ts";
import { parseCounts } from "../../../src/model/parse-values.ts";
import { exampleNode } from "../../support/install-example.ts";

const node = (role: Role, index: number, state: NodeState, host?: string) =>
  exampleNode({ role, index, state, ...(host !== undefined && { host }) });
const two = { master: 1, agent: 1, public_agent: 0 };

// The master's state, the agent's, and those of a cluster in the cloud and on this machine.
test.each([
  ["running", "running", "running", "running"],
  ["running", "starting", "starting", "starting"],
  ["running", "ended", "incomplete", "incomplete"],
  ["running", "ending", "incomplete", "incomplete"],
  ["running", "stopped", "incomplete", "incomplete"],
  ["paused", "running", "incomplete", "incomplete"],
  ["stopped", "stopped", "ending", "stopped"],
  ["stopped", "paused", "ending", "incomplete"],
  ["ending", "ended", "ending", "incomplete"],
] as const)(
  "a cluster with a master that is %s and an agent that is %s is %s in the cloud, and %s here",
  (...states) => {
    const [master, agent, cloud, local] = states;
    const nodes = [node("master", 0, master), node("agent", 0, agent)];
    expect([clusterState(nodes, two), localClusterState(nodes, two)]).toEqual([cloud, local]);
  },
);

test("a cluster is complete with the requested nodes of each role, or if nobody knows how many were requested", () => {
  const nodes = [node("master", 0, "running"), node("master", 1, "running")];
  expect(clusterState(nodes, two)).toBe("incomplete");
  expect(clusterState(nodes, { ...two, agent: 0 })).toBe("running");
  expect(clusterState(nodes, undefined)).toBe("running");
  expect([clusterState([], two), localClusterState([], two)]).toEqual(["ending", "incomplete"]);
  expect(localClusterState([node("master", 0, "stopped")], two)).toBe("stopped");
});

test("nodes are counted, named and sorted by role, then by number", () => {
  const nodes = [
    node("public_agent", 0, "running"),
    node("agent", 10, "stopped"),
    node("agent", 2, "running"),
    node("agent", 3, "ended"),
    node("master", 0, "starting"),
  ];
  const names = ["master_0", "agent_2", "agent_3", "agent_10", "public_agent_0"];
  expect(nodes.toSorted(byRoleAndIndex).map(nodeReference)).toEqual(names);
  const counts = countNodes(nodes);
  expect(counts).toEqual({ master: 1, agent: 2, public_agent: 1 });
  expect(nodeCount(counts)).toBe(4);
  expect(parseCounts(countsText(counts))).toEqual(counts);
});

test("a node is reachable if it runs and has an address", () => {
  const nodes = [
    node("agent", 0, "running"),
    node("agent", 0, "running", ""),
    node("agent", 0, "paused"),
  ];
  expect(nodes.map(isReachable)).toEqual([true, false, false]);
});
