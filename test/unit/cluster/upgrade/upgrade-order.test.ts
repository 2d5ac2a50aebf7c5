import { expect, test } from "bun:test";
import {
  type SurveyedNode,
  openLedger,
  remainingWork,
  roundsOf,
  wasUpgradedTo,
} from "../../../../src/cluster/upgrade/upgrade-order.ts";
import { type Role, nodeReference } from "../../../../src/model/cluster-record.ts";
import { unmarked, unmarkedFacts } from "../../../../src/outside-text.ts";
import { parseNodeVersion } from "../../../../src/platform/upgrade/node-version.ts";

const exampleScope = {
  state: "running",
  publicAddress: "192.0.2.1",
  privateAddress: "10.0.0.1",
  ssh: { host: "192.0.2.1", port: 22, user: "admin" },
  web: { host: "192.0.2.1", httpPort: 80, httpsPort: 443 },
} as const;

/** A node with this version, whose last upgrade was to another one. */
function surveyed(role: Role, index: number, version: string, to = ""): SurveyedNode {
  const found = parseNodeVersion(`version={"version": "${version}"}\nfrom=0.9\nto=${to}`);
  return { node: { ...exampleScope, id: `${role}-${index}`, role, index }, found };
}

const references = (nodes: readonly SurveyedNode[]): readonly string[] =>
  nodes.map(({ node }) => nodeReference(node));
const none = { version: "2.0", unready: new Set<string>(), isRepeatable: true };

test("masters are upgraded one after the other, then agents, then public agents", () => {
  const roles = ["public_agent", "agent", "agent", "agent", "master", "master"] as const;
  const nodes = roles.map((role, index) => surveyed(role, 10 - index, "1.0"));
  const rounds = roundsOf(remainingWork(nodes, none), 2);
  expect(rounds.map((round) => [round.atOnce, references(round.nodes)])).toEqual([
    [1, ["master_5", "master_6"]],
    [2, ["agent_7", "agent_8", "agent_9"]],
    [2, ["public_agent_10"]],
  ]);
});

test("nodes that have the version are left out", () => {
  const nodes = [
    surveyed("master", 0, "2.0", "2.0"),
    surveyed("agent", 0, "2.0"),
    surveyed("agent", 1, "1.0", "2.0"),
  ];
  const work = remainingWork(nodes, none);
  expect(references(work)).toEqual(["agent_1"]);
  expect(work[0]).toMatchObject({ runsScript: true, from: "1.0" });
  expect(nodes.map((each) => wasUpgradedTo(each, "2.0"))).toEqual([true, false, false]);
});

test.each([true, false])(
  "a node whose check fails after its upgrade is upgraded again if that can be: %p",
  (isRepeatable) => {
    const node = surveyed("agent", 0, "2.0", "2.0");
    const work = remainingWork([node], {
      version: "2.0",
      unready: new Set([node.node.id]),
      isRepeatable,
    });
    expect(work).toEqual([{ ...node, runsScript: isRepeatable, from: "0.9" }]);
  },
);

test("the ledger says which nodes have which version, and whose upgrade goes on", () => {
  const nodes = [
    surveyed("master", 0, "1.0"),
    surveyed("agent", 0, "1.0"),
    surveyed("agent", 1, "1.0"),
  ];
  const [master, agent] = nodes.map(({ node }) => node);
  const ledger = openLedger(nodes);
  ledger.begin(master!);
  ledger.seen(master!, "2.0");
  ledger.begin(agent!);
  expect(unmarked(ledger.versionsText())).toBe(
    "Version 2.0: master_0. Version 1.0: agent_0, agent_1.",
  );
  expect(ledger.begun()).toEqual(["agent_0"]);
  expect(unmarkedFacts(ledger.versions())).toEqual({
    master_0: "2.0",
    agent_0: "1.0",
    agent_1: "1.0",
  });
});
