import { expect, test } from "bun:test";
import { ClusterError } from "../../../src/errors.ts";
import { retry, type RetryRule } from "../../../src/system/retry.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scriptedClock, settableClock } from "../../support/scripted-clock.ts";

const outage = new ClusterError("cloud-failed", "It did not answer.", { transient: true });

/** Fails so often, on a clock that only pauses advance. Returns the times of the tries. */
async function tries(failures: number, rule: Partial<RetryRule>, error: unknown = outage) {
  const clock = scriptedClock();
  const at: number[] = [];
  const task = async (): Promise<string> => {
    at.push(clock.nowMs);
    if (at.length <= failures) throw error;
    return "done";
  };
  const outcome = retry(task, { clock, pauseMs: (count) => 100 * count, ...rule }, neverAborted);
  return { outcome: await outcome.catch((thrown: unknown) => thrown), at };
}

test("a transient failure is retried after growing pauses until it succeeds", async () => {
  expect(await tries(3, {})).toEqual({ outcome: "done", at: [0, 100, 300, 600] });
});

test.each([
  ["the last try may begin at the deadline", { deadlineMs: 300 }, [0, 100, 300]],
  ["no try begins after the deadline", { deadlineMs: 299 }, [0, 100]],
  ["the number of tries is limited", { mostTries: 2 }, [0, 100]],
])("%s, and the last failure is thrown", async (_, rule, at) => {
  expect(await tries(9, rule)).toEqual({ outcome: outage, at });
});

test("whenever a try sees something new, the time begins again, up to the latest", async () => {
  const seen = { count: 0 };
  const during = (most: number) => () => Math.min((seen.count += 1), most);
  const rule = { deadlineMs: 300, pauseMs: () => 200 };
  expect((await tries(99, { ...rule, seen: during(4) })).at).toEqual([0, 200, 400, 600]);
  seen.count = 0;
  expect((await tries(99, { ...rule, seen: during(99), latestMs: 450 })).at).toEqual([0, 200, 400]);
});

test.each([-3_600_000, 3_600_000])(
  "the limits stay where they are if the clock is set by %p ms",
  async (ms) => {
    for (const rule of [
      { deadlineMs: 300 },
      { deadlineMs: 100, latestMs: 300, seen: () => ({}) },
    ]) {
      const { clock, set } = settableClock();
      const at: unknown[] = [];
      const task = async (): Promise<never> => {
        if (at.push(clock.passed?.()) === 2) set.ms = ms;
        throw outage;
      };
      expect(
        await failureOf(retry(task, { clock, pauseMs: () => 100, ...rule }, neverAborted)),
      ).toBe(outage);
      expect(at).toEqual([0, 100, 200, 300]);
    }
  },
);

test.each([
  ["a definite failure", new ClusterError("not-permitted", "No.")],
  ["a bug", new TypeError("x")],
])("%s isn't retried", async (_, error) => {
  expect(await tries(1, {}, error)).toEqual({ outcome: error, at: [0] });
});

test("failures that are followed by another try are reported", async () => {
  const reported: ClusterError[] = [];
  await tries(9, { mostTries: 3, onFailure: (error) => void reported.push(error) });
  expect(reported).toEqual([outage, outage]);
});

test("an abort ends it with the abort's reason, whatever failed", async () => {
  const interrupt = new AbortController();
  const task = async (): Promise<never> => {
    interrupt.abort(new Error("Ctrl-C"));
    throw outage;
  };
  const clock = scriptedClock();
  expect(
    (await failureOf(retry(task, { clock, pauseMs: () => 0 }, interrupt.signal))).message,
  ).toBe("Ctrl-C");
});

test("after an abort nothing is tried, and a failure that the abort has caused is not retried", async () => {
  const begun = { count: 0 };
  const interrupt = new AbortController();
  const task = async (): Promise<never> => {
    begun.count += 1;
    interrupt.abort(new Error("Ctrl-C"));
    throw new Error("broken by the abort");
  };
  const rule = { clock: scriptedClock(), pauseMs: () => 0 };
  for (let times = 0; times < 2; times += 1)
    expect((await failureOf(retry(task, rule, interrupt.signal))).message).toBe("Ctrl-C");
  expect(begun.count).toBe(1);
});
