import { expect, test } from "bun:test";
import { askNode } from "../../../../src/platform/readiness/ask-nodes.ts";
import type { Connection } from "../../../../src/ssh/connection/connection.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { fastClock } from "../../../support/scripted-clock.ts";

const node = { role: "master", index: 0, state: "running", ssh: { host: "192.0.2.1" } } as NodeRecord;

test.each([
  ["", "the check failed: its answer is empty"],
  ["\n", "the check failed: its answer is empty"],
  ["welcome\n", "the check failed: its answer is empty"],
  ["layout=\nstatus=\nunit=\n", "not installed yet"],
])("a node that answers %j is waited for: %s", async (stdout, reason) => {
  const run: Connection["run"] = async () => ({ status: 0, stdout, stderr: "" });
  const connections = { connect: async () => ({ run }) as Connection } as never;
  const question = { connections, clock: fastClock, looks: 1, lookPauseMs: 0, limitMs: 60_000 };
  const { verdict } = await askNode(node, question, neverAborted);
  expect(verdict).toEqual({ kind: "waiting", reason });
});
