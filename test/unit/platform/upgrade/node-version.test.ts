import { expect, test } from "bun:test";
import { platformHead } from "../../../../src/platform/folder/platform-file.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import {
  parseNodeVersion,
  readNodeVersion,
} from "../../../../src/platform/upgrade/node-version.ts";
import type { ConnectionPool } from "../../../../src/ssh/connection/connection-pool.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { leastFacts } from "../../../support/platform-facts.ts";

test("a node's answer has the platform's version and the last upgrade", () => {
  const answer = [
    "layout=folder",
    'version={"name": "meter", "version": "2.0", "variant": "none"}',
    `facts=${platformHead(leastFacts)}`,
    "status=exit 3",
    "unit=failed",
    "from=1.0",
    "to=2.0",
    "log=one=two",
    "log=three",
  ];
  expect(parseNodeVersion(answer.join("\n"))).toEqual({
    layout: "folder",
    name: "meter",
    version: "2.0",
    facts: leastFacts,
    upgrade: {
      state: "failed",
      reason: "its upgrade script exited with status 3",
      log: ["one=two", "three"],
      from: "1.0",
      to: "2.0",
    },
  });
});

test.each([
  ["", "inactive", "none"],
  ["", "active", "running"],
  ["running", "active", "running"],
  ["running", "activating", "running"],
  ["running", "", "running"],
  ["running", "failed", "failed"],
  ["running", "inactive", "failed"],
  ["exit 0", "active", "succeeded"],
  ["exit 0", "inactive", "succeeded"],
  ["exit 1", "active", "failed"],
  ["exit zero", "inactive", "none"],
] as const)(
  "a status of %j with a unit that is %s is an upgrade that is %s",
  (status, unit, state) => {
    expect(parseNodeVersion(`status=${status}\nunit=${unit}\n`).upgrade.state).toBe(state);
  },
);

test("an answer of any other form says nothing", () => {
  const nothing = { layout: "", name: "", version: "", facts: undefined };
  for (const text of [
    "",
    "version",
    "version=[1]",
    "version={",
    "layout=a b\nfacts={}",
    'version={"version": 2}',
  ])
    expect(parseNodeVersion(text)).toMatchObject(nothing);
});

test("a version is one short line", () => {
  const version = JSON.stringify({ version: `1\n\u001b[31m::error::2${"x".repeat(1000)}` });
  const found = parseNodeVersion(`version=${version}`).version;
  expect(found).toStartWith("1 : :error::2xxx");
  expect(found.length).toBeLessThanOrEqual(101);
});

test("a node that can't be asked for its version is an error with the reason", async () => {
  const stderr = `${Array.from({ length: 9 }, (_, index) => `line ${index}`).join("\n")}\n`;
  const run = async () => ({ status: 1, stdout: "", stderr });
  const connections = { connect: async () => ({ run }) } as unknown as ConnectionPool;
  const node = { role: "agent", index: 2 } as NodeRecord;
  const failure = await failureOf(readNodeVersion(node, connections, neverAborted));
  const output = ["line 4", "line 5", "line 6", "line 7", "line 8"];
  expect(failure).toMatchObject({
    id: "remote-command-failed",
    facts: { node: "agent_2", status: 1, output },
  });
  expect(failure.message).toEndWith("line 8.");
});
