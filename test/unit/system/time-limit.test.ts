import { expect, jest, test } from "bun:test";
import { ClusterError } from "../../../src/errors.ts";
import {
  abortReason,
  eitherSignal,
  orAborted,
  timeLimit,
  untilAborted,
  watchdog,
  whileWaitingFor,
} from "../../../src/system/time-limit.ts";
import { failureOf } from "../../support/failure-of.ts";
import { until } from "../../support/until.ts";
import { neverAborted } from "../../support/never-aborted.ts";

test("it bites when nothing feeds it", async () => {
  using dog = watchdog(20, neverAborted);
  await until("its bite", () => dog.signal.aborted);
  expect(dog.hasExpired()).toBe(true);
});

test("it doesn't bite while it is fed, nor after its end", () => {
  jest.useFakeTimers();
  try {
    const { signal, hasExpired, feed, [Symbol.dispose]: end } = watchdog(60, neverAborted);
    for (let meals = 0; meals < 5; meals += 1) {
      jest.advanceTimersByTime(50);
      feed();
    }
    end();
    jest.advanceTimersByTime(1000);
    expect([signal.aborted, hasExpired()]).toEqual([false, false]);
  } finally {
    jest.useRealTimers();
  }
});

test("an outer abort is not its bite", () => {
  const outer = new AbortController();
  using dog = watchdog(1000, outer.signal);
  outer.abort();
  expect([dog.signal.aborted, dog.hasExpired()]).toEqual([true, false]);
});

const late = new ClusterError("deadline-passed", "It took too long.", {
  hint: "Be patient.",
  facts: { cluster: "c" },
});

test("a time limit says what was waited for, in the words of the innermost wait", async () => {
  const signal = AbortSignal.abort(late);
  const inner = async () =>
    whileWaitingFor(
      () => "the post",
      async () => Promise.reject(late),
      signal,
    );
  const failure = await failureOf(whileWaitingFor(() => "the morning", inner, signal));
  expect(failure).toMatchObject({
    id: "deadline-passed",
    message: "It took too long. It was still waiting for the post.",
    hint: "Be patient.",
    facts: { cluster: "c", waitingFor: "the post" },
  });
});

test.each([
  ["a failure of the task", AbortSignal.abort(late), new Error("broken")],
  ["an interruption", AbortSignal.abort(new Error("stop")), new Error("stop")],
  ["another limit's error", neverAborted, late],
])("%s stays as it is", async (_, signal, error) => {
  const reason = signal.aborted && error.message === "stop" ? (signal.reason as Error) : error;
  const thrown = await whileWaitingFor(
    () => "the post",
    async () => Promise.reject(reason),
    signal,
  ).catch((caught: unknown) => caught);
  expect(thrown).toBe(reason);
});

test("it is aborted with the reason of the first", () => {
  const [one, two] = [new AbortController(), new AbortController()];
  using either = eitherSignal([one.signal, two.signal]);
  expect(either.signal.aborted).toBe(false);
  two.abort("two");
  one.abort("one");
  expect(either.signal.reason).toBe("two");
});

test("one that is aborted beforehand counts", () => {
  using either = eitherSignal([AbortSignal.abort("before")]);
  expect(either.signal.reason).toBe("before");
});

test("once disposed of it hears nothing more", () => {
  const one = new AbortController();
  const either = eitherSignal([one.signal]);
  either[Symbol.dispose]();
  one.abort("late");
  expect(either.signal.aborted).toBe(false);
});

test("work that goes on is given up with the abort's reason, and its result counts until then", async () => {
  const stop = new AbortController();
  expect(await orAborted(Promise.resolve("done"), stop.signal)).toBe("done");
  const givenUp = failureOf(orAborted(new Promise(() => {}), stop.signal));
  stop.abort(new Error("enough"));
  expect((await givenUp).message).toBe("enough");
  expect((await failureOf(orAborted(Promise.resolve("late"), stop.signal))).message).toBe("enough");
});

test("a time limit aborts with its error when the time is up, unless it is disposed of", () => {
  jest.useFakeTimers();
  try {
    const [limit, other, past] = [timeLimit(50, late), timeLimit(50, late), timeLimit(-1, late)];
    other[Symbol.dispose]();
    jest.advanceTimersByTime(40);
    expect([limit.signal.aborted, past.signal.reason]).toEqual([false, late]);
    jest.advanceTimersByTime(20);
    expect([limit.signal.reason, other.signal.aborted]).toEqual([late, false]);
  } finally {
    jest.useRealTimers();
  }
});

test("an aborted task fails with the abort's reason, or with what adds to it", () => {
  const signal = AbortSignal.abort(late);
  const more = new Error("more", { cause: late });
  expect(abortReason(more, signal)).toBe(more);
  for (const other of [new Error("other", { cause: more }), { cause: late }, undefined])
    expect(abortReason(other, signal)).toBe(late);
});

test("work that ends because its signal is aborted has not failed", async () => {
  const stop = new AbortController();
  const ended = untilAborted(orAborted(new Promise<never>(() => {}), stop.signal), stop.signal);
  stop.abort(new Error("enough"));
  expect(await ended).toBeUndefined();
  const failing = untilAborted(Promise.reject(new Error("broken")), neverAborted);
  expect((await failureOf(failing)).message).toBe("broken");
});
