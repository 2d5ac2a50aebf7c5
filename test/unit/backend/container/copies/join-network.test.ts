import { expect, test } from "bun:test";
import {
  assertJoined,
  networkFiles,
} from "../../../../../src/backend/container/copies/join-network.ts";
import type { NodeShell } from "../../../../../src/backend/contract.ts";
import type { NodeRecord } from "../../../../../src/model/cluster-record.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const node = { role: "agent", index: 1 } as NodeRecord;
const shellOf = (status: number, stdout: string): NodeShell => ({
  run: async () => ({ status, stdout, stderr: "" }),
});

test("a copy's node that has joined its private network is as it should be", async () => {
  expect(await assertJoined(node, shellOf(0, "active"), neverAborted)).toBeUndefined();
});

test("a copy's node that has not joined it is an error with the last lines of its unit", async () => {
  const joining = assertJoined(
    node,
    shellOf(3, "failed\nRTNETLINK answers: Operation not supported\n"),
    neverAborted,
  );
  const failure = await failureOf(joining);
  expect(failure).toMatchObject({ id: "machine-failed", facts: { node: "agent_1" } });
  expect(failure.message).toContain("\n  failed\n  RTNETLINK answers: Operation not supported");
});

test("a copy's node knows both addresses of each other node, and its own", () => {
  const addresses = (number: number) => ({
    address: `172.20.0.${number}`,
    platformAddress: `172.18.0.${number}/16`,
  });
  const [program] = networkFiles(addresses(2), [addresses(3), addresses(4)]);
  expect(program!.text).toStartWith(
    "ADDRESS=172.18.0.2/16\nENGINE_ADDRESS=172.20.0.2\nPEERS='172.20.0.3 172.18.0.3\n172.20.0.4 172.18.0.4'\n",
  );
});
