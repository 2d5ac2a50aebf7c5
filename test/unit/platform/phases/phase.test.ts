import { expect, test } from "bun:test";
import { ClusterError } from "../../../../src/errors.ts";
import { type Phase, runPhase } from "../../../../src/platform/phases/phase.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import type { Connection } from "../../../../src/ssh/connection/connection.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";

const node = { id: "i-0", role: "master", index: 0 } as NodeRecord;
const never = new AbortController().signal;
const phase: Phase<string> = { title: "Work", run: async ({ reference }) => `done on ${reference}` };

/** Runs the phase on a node that cannot be reached until a time, in seconds from the start. Sleeping takes no time. */
function runOnLostNode(backAfterSeconds: number, failure: ClusterError) {
  const time = { ms: 0 };
  const seen = { tries: 0 };
  const connect = async (): Promise<Connection> => {
    seen.tries += 1;
    if (time.ms < backAfterSeconds * 1000) throw failure;
    return {} as Connection;
  };
  const clock = { now: () => time.ms, sleep: async (ms: number) => void (time.ms += ms) };
  const connections = { connect, adopt: () => {}, [Symbol.asyncDispose]: async () => {} };
  const { progress, steps, updates } = recordingProgress();
  const result = runPhase(phase, node, { connections, clock, progress }, never);
  return { result, time, seen, steps, updates };
}

const lost = new ClusterError("connection-failed", "The connection was lost.", { transient: true });

test.each([0, 1, 20, 60, 105])("a node that is back after %d s goes on within 10 s", async (seconds) => {
  const { result, time, steps, updates } = runOnLostNode(seconds, lost);
  expect(await result).toBe("done on master_0");
  expect(steps).toEqual(["Work master_0: done"]);
  expect(updates[0]).toBe(seconds === 0 ? undefined : lost.message);
  expect(time.ms).toBeWithin(seconds * 1000, seconds * 1000 + 10_001);
});

test("a node that restarts its SSH server is asked again soon", async () => {
  const { result, time } = runOnLostNode(0.5, lost);
  await result;
  expect(time.ms).toBeLessThan(2_000);
});

test("a node that stays lost is given up after two minutes, with the loss as the reason", async () => {
  const { result, time, seen } = runOnLostNode(1000, lost);
  expect(await failureOf(result)).toBe(lost);
  expect(time.ms).toBeWithin(105_000, 120_001);
  expect(seen.tries).toBeGreaterThan(10);
});

test.each([
  ["a refused key", new ClusterError("host-key-changed", "Another key.", {})],
  ["a login that stays refused", new ClusterError("connection-failed", "Refused.", { transient: false })],
  ["a command that may succeed later", new ClusterError("remote-command-failed", "Busy.", { transient: true })],
])("%s is no lost connection: the phase fails at once", async (_, failure) => {
  const { result, seen } = runOnLostNode(1000, failure);
  expect(await failureOf(result)).toBe(failure);
  expect(seen.tries).toBe(1);
});
