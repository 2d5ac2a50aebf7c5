import { expect, test } from "bun:test";
import { rootCertificates } from "node:tls";
import { ClusterError } from "../../../../src/errors.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import { layouts } from "../../../../src/platform/layouts/find-layout.ts";
import { createMastersChecker } from "../../../../src/platform/readiness/masters-checker.ts";
import type { ConnectionPool } from "../../../../src/ssh/connection/connection-pool.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const master = { role: "master", index: 0 } as NodeRecord;

/** Checks a cluster with TLS whose certificate authority is read with this result. */
async function check(
  read: () => Promise<{ readonly status: number; readonly stdout: string }>,
  nodes = [master],
  signal = neverAborted,
) {
  const connections = { connect: async () => ({ run: read }) } as unknown as ConnectionPool;
  const request = {
    variant: "enterprise",
    layout: layouts[0],
    isTlsEnabled: true,
    masters: nodes,
    agentCount: 0,
    login: undefined,
    connections,
  } as const;
  return createMastersChecker(systemClock)(request, signal);
}

const failing = (error: Error) => async (): Promise<never> => {
  throw error;
};

test.each([
  ["is not there yet", async () => ({ status: 22, stdout: "" })],
  ["is something else", async () => ({ status: 0, stdout: "<html>" })],
  ["is incomplete", async () => ({ status: 0, stdout: "-----BEGIN CERTIFICATE-----\nMIIB" })],
  [
    "lacks the end of its chain",
    async () => ({
      status: 0,
      stdout: `${rootCertificates[0]}\n-----BEGIN CERTIFICATE-----\nMIIB`,
    }),
  ],
  ["is lost", failing(new ClusterError("connection-failed", "It is gone.", { transient: true }))],
  ["takes too long", failing(new ClusterError("deadline-passed", "Too slow."))],
])("a certificate authority that %s is waited for", async (_, read) => {
  const reason = "its certificate authority is not readable yet";
  expect(await check(read)).toEqual([{ subject: "master_0", reason }]);
});

test("another failure to read it ends the wait", async () => {
  const changed = new ClusterError("host-key-changed", "Another machine.");
  expect(await failureOf(check(failing(changed)))).toBe(changed);
  expect((await failureOf(check(failing(new TypeError("A bug"))))).message).toBe("A bug");
});

test("without masters, nothing is waited for", async () => {
  expect(await check(failing(new TypeError("not used")), [])).toEqual([]);
});

test("after an interruption, a lost master is not waited for", async () => {
  const stop = new AbortController();
  const read = async (): Promise<never> => {
    stop.abort(new Error("interrupted"));
    throw new ClusterError("connection-failed", "It is gone.", { transient: true });
  };
  expect((await failureOf(check(read, [master], stop.signal))).message).toBe("interrupted");
});
