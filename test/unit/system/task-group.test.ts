import { expect, test } from "bun:test";
import { TaskGroup } from "../../../src/system/task-group.ts";

const never = new AbortController().signal;

const untilAborted = async (signal: AbortSignal): Promise<void> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });

test("the first failure aborts all others, with itself as the reason", async () => {
  const first = new Error("first");
  const reasons: unknown[] = [];
  await using tasks = new TaskGroup(never);
  tasks.start(async (signal) => untilAborted(signal).catch((reason: unknown) => void reasons.push(reason)));
  tasks.start(async () => Promise.reject(first));
  tasks.start(async () => Promise.reject(new Error("second")));
  await untilAborted(tasks.signal).catch(() => {});
  await Promise.resolve();
  expect(tasks.signal.reason).toBe(first);
  expect(reasons).toEqual([first]);
});

test("leaving the group aborts what still runs, and awaits its end", async () => {
  const steps: string[] = [];
  {
    await using tasks = new TaskGroup(never);
    tasks.start(async (signal) => {
      await untilAborted(signal).catch(() => {});
      await Bun.sleep(5);
      steps.push("cleaned up");
    });
    steps.push("left");
  }
  expect(steps).toEqual(["left", "cleaned up"]);
});

test("an abort from outside reaches every task", async () => {
  const outer = new AbortController();
  await using tasks = new TaskGroup(outer.signal);
  const aborted = Promise.withResolvers<unknown>();
  tasks.start(async (signal) => untilAborted(signal).catch(aborted.resolve));
  const reason = new Error("enough");
  outer.abort(reason);
  expect(await aborted.promise).toBe(reason);
});

test("a task says what the outer signal interrupted", async () => {
  const reason = new Error("too late");
  const outer = new AbortController();
  const tasks = new TaskGroup(outer.signal);
  const wrapped = new Error("too late, while it waited", { cause: reason });
  tasks.start(async (signal) => untilAborted(signal).catch(() => Promise.reject(wrapped)));
  tasks.start(untilAborted);
  outer.abort(reason);
  expect(await tasks.explain(reason)).toBe(wrapped);
  const own = new Error("of its own");
  expect(await tasks.explain(own)).toBe(own);
});
