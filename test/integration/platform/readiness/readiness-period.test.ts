import { expect, test } from "bun:test";
import type { ConnectionPool } from "../../../../src/ssh/connection/connection-pool.ts";
import { waitUntilReady } from "../../../../src/platform/readiness/readiness.ts";
import { silentProgress } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

test.skipIf(machinesLack !== undefined)(
  "a node is asked again a second after a question was sent, also after the first one, which waits for the login",
  async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const clock = scriptedClock();
    const enough = new AbortController();
    const askedAtMs: number[] = [];
    // Only the first login takes time, and so does each answer.
    const connect: ConnectionPool["connect"] = async (node, signal) => {
      if (askedAtMs.length === 0) clock.nowMs += 400;
      const connection = await machines.connections.connect(node, signal);
      return {
        ...connection,
        run: async (command, inner) => {
          if (askedAtMs.push(clock.nowMs) === 4) enough.abort(new Error("asked often enough"));
          const result = await connection.run(command, inner);
          clock.nowMs += 50;
          return result;
        },
      };
    };
    const cluster = exampleCluster(machines.nodes, "oss");
    const request = {
      describe: async () => cluster,
      cluster,
      connections: { ...machines.connections, connect },
      login: undefined,
      skipHttpChecks: true,
      deadlineMs: 600_000,
      clock,
      progress: silentProgress,
    };
    const failure = await failureOf(waitUntilReady(request, enough.signal));
    expect(failure.message).toBe("asked often enough");
    expect(askedAtMs).toEqual([400, 1400, 2400, 3400]);
  },
);
