import { expect, test } from "bun:test";
import { ClusterError } from "../../../../src/errors.ts";
import type { ClusterRecord, NodeRecord } from "../../../../src/model/cluster-record.ts";
import { createMachineWatch } from "../../../../src/platform/readiness/machine-watch.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { serveOnLoopback } from "../../../support/loopback-server.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scriptedClock, settableClock } from "../../../support/scripted-clock.ts";

const cluster = { id: "default", state: "running", nodes: [] } as unknown as ClusterRecord;

/** A watch whose record is due for a refresh, shortly before the deadline. */
function dueWatch(describe: (signal: AbortSignal) => Promise<ClusterRecord>) {
  const clock = scriptedClock();
  const watch = createMachineWatch({ cluster, describe, deadlineMs: 60_050, clock });
  clock.nowMs = 60_000;
  return watch;
}

// Shows R105.
test("a backend that doesn't answer holds up nothing beyond the deadline: the last record counts", async () => {
  const hanging = async (signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    });
  expect(await dueWatch(hanging).current(false, neverAborted)).toBe(cluster);
});

test("the answer of a backend that takes its time counts", async () => {
  const ended = { ...cluster, id: "fresh" };
  using server = serveOnLoopback(() => Response.json(ended));
  const describe = async (signal: AbortSignal) =>
    (await fetch(server.url, { signal })).json() as Promise<ClusterRecord>;
  const clock = scriptedClock();
  const watch = createMachineWatch({ cluster, describe, deadlineMs: 600_000, clock });
  clock.nowMs = 60_000;
  expect(await watch.current(false, neverAborted)).toEqual(ended);
});

test("the backend is asked again after a while, though the clock is set back or forward meanwhile", async () => {
  const { clock, set } = settableClock();
  let asked = 0;
  const describe = async (): Promise<ClusterRecord> => ({ ...cluster, id: String((asked += 1)) });
  const watch = createMachineWatch({ cluster, describe, deadlineMs: 600_000, clock });
  set.ms = 3_600_000;
  expect(await watch.current(false, neverAborted)).toBe(cluster);
  set.ms = -3_600_000;
  await clock.sleep(20_000, neverAborted);
  expect(await watch.current(false, neverAborted)).toMatchObject({ id: "1" });
});

test("an outage is tolerated, a refusal isn't", async () => {
  const outage = new ClusterError("cloud-failed", "no answer", { transient: true });
  expect(await dueWatch(async () => Promise.reject(outage)).current(false, neverAborted)).toBe(
    cluster,
  );
  const refusal = new ClusterError("not-permitted", "no");
  const thrown = await dueWatch(async () => Promise.reject(refusal))
    .current(false, neverAborted)
    .catch((error: unknown) => error);
  expect(thrown).toBe(refusal);
});

const node = (index: number, changes: Partial<NodeRecord> = {}) =>
  ({ id: `i-${index}`, role: "agent", index, state: "running", ...changes }) as NodeRecord;
const pair = exampleCluster([node(0), node(1)], "oss");

/** A watch whose clock is the test's, and whose backend gives these answers, one after the other. */
function watchAnswering(answers: readonly ClusterRecord[]) {
  const clock = scriptedClock();
  const asked: number[] = [];
  const describe = async (): Promise<ClusterRecord> => {
    const answer = answers[asked.length];
    asked.push(clock.nowMs);
    return answer ?? pair;
  };
  const { current } = createMachineWatch({ cluster: pair, describe, deadlineMs: 600_000, clock });
  return {
    asked,
    at: async (ms: number, mustBeFresh = false): Promise<ClusterRecord> => {
      clock.nowMs = ms;
      return current(mustBeFresh, neverAborted);
    },
  };
}

test("the backend is asked every 15 s, and every 3 s where a node does not answer", async () => {
  const { at, asked } = watchAnswering([]);
  for (const ms of [0, 14_999, 15_000, 20_000]) await at(ms);
  expect(asked).toEqual([15_000]);
  for (const ms of [17_999, 18_000, 20_999, 21_000]) await at(ms, true);
  expect(asked).toEqual([15_000, 18_000, 21_000]);
});

test.each([
  [
    "is ending",
    [node(0), node(1, { state: "ending", stateReason: "spot" })],
    "agent_1 (i-1) is gone: spot",
  ],
  ["has ended", [node(0), node(1, { state: "ended" })], "agent_1 (i-1) is gone."],
  ["is not there any more", [node(0)], "agent_1 (i-1) is gone."],
])("a machine that %s fails the wait and is named", async (_, nodes, named) => {
  const error = await failureOf(watchAnswering([{ ...pair, nodes }]).at(15_000));
  expect(error.id).toBe("machine-failed");
  expect(error.message).toContain(named);
  expect(error.message).not.toContain("agent_0");
});

test("a cluster that lacks machines it never had fails the wait, too", async () => {
  const error = await failureOf(watchAnswering([{ ...pair, state: "incomplete" }]).at(15_000));
  expect(error.id).toBe("machine-failed");
});
