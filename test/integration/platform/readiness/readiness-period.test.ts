import { expect, test } from "bun:test";
import type { ConnectionPool } from "../../../../src/ssh/connection/connection-pool.ts";
import { waitUntilReady } from "../../../../src/platform/readiness/readiness.ts";
import { silentProgress, systemClock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

test.skipIf(machinesLack !== undefined)(
  "a node is asked again a second after a question was sent, also after the first one, which waits for the login",
  async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const asked: number[] = [];
    const connect: ConnectionPool["connect"] = async (node, signal) => {
      if (asked.length === 0) await systemClock.sleep(400, signal);
      asked.push(Date.now());
      return machines.connections.connect(node, signal);
    };
    const cluster = exampleCluster(machines.nodes, "oss");
    const request = {
      describe: async () => cluster,
      cluster,
      connections: { ...machines.connections, connect },
      login: undefined,
      skipHttpChecks: true,
      deadlineMs: Date.now() + 3_000,
      clock: systemClock,
      progress: silentProgress,
    };
    const failure = await failureOf(waitUntilReady(request, neverAborted));
    expect(failure).toMatchObject({ id: "deadline-passed" });
    // The last question comes at the deadline.
    const gaps = asked.slice(1, -1).map((atMs, index) => atMs - asked[index]!);
    expect(gaps.length).toBeGreaterThan(1);
    expect(Math.min(...gaps)).toBeGreaterThan(980);
  },
);
