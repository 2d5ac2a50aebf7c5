import { expect, test } from "bun:test";
import { withUpgradeLock } from "../../../../src/platform/upgrade/upgrade-lock.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import type { ConnectionPool } from "../../../../src/ssh/connection/connection-pool.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const firstMaster: NodeRecord = {
  id: "m0",
  role: "master",
  index: 0,
  state: "running",
  publicAddress: undefined,
  privateAddress: "10.0.0.1",
  ssh: { host: "10.0.0.1", port: 22, user: "u" },
  web: { host: "10.0.0.1", httpPort: 80, httpsPort: 443 },
};

test("a first master that never answers the request for the lock is an error, not a silent wait", async () => {
  const run = (_: unknown, signal: AbortSignal) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason)),
    );
  const connections = { connect: async () => ({ run }) } as unknown as ConnectionPool;
  const clock = scriptedClock();
  const work = { connections, clock, signal: neverAborted };
  const request = { cluster: exampleCluster([firstMaster], "oss"), firstMaster };
  const failure = await failureOf(withUpgradeLock(work, request, async () => "upgraded"));
  expect(failure).toMatchObject({ id: "remote-command-failed", facts: { node: "master_0" } });
  expect(clock.nowMs).toBeGreaterThan(60_000);
});
