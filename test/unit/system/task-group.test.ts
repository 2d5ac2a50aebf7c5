import { expect, test } from "bun:test";
import { withTasks } from "../../../src/system/concurrency.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";

const untilAborted = async (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });

test("the first failure of a task aborts the body and all other tasks, and is thrown", async () => {
  const first = new Error("first");
  const reasons: unknown[] = [];
  const outcome = withTasks({ signal: neverAborted }, async (tasks) => {
    tasks.start(async ({ signal }) =>
      untilAborted(signal).catch((reason: unknown) => void reasons.push(reason)),
    );
    tasks.start(async () => Promise.reject(first));
    tasks.start(async () => Promise.reject(new Error("second")));
    await untilAborted(tasks.work.signal).catch((reason: unknown) => void reasons.push(reason));
    throw new Error("the body says something else");
  });
  expect((await failureOf(outcome)) as Error).toBe(first);
  expect(reasons).toEqual([first, first]);
});

test("a failure of the body aborts the tasks, and is thrown when they have ended", async () => {
  const steps: string[] = [];
  const failure = new Error("of the body");
  const outcome = withTasks({ signal: neverAborted }, async (tasks) => {
    tasks.start(async ({ signal }) => {
      await untilAborted(signal).catch(() => {});
      await Bun.sleep(5);
      steps.push("cleaned up");
    });
    throw failure;
  });
  expect((await failureOf(outcome)) as Error).toBe(failure);
  expect(steps).toEqual(["cleaned up"]);
});

test("a task that fails although nobody asks for its result fails the group", async () => {
  const failure = new Error("unobserved");
  const outcome = withTasks({ signal: neverAborted }, async (tasks) => {
    tasks.start(async () => Promise.reject(failure));
    await Bun.sleep(5);
    return "a result";
  });
  expect((await failureOf(outcome)) as Error).toBe(failure);
});

test("the body's result ends the tasks that still run, and those that they start meanwhile", async () => {
  const steps: string[] = [];
  const result = await withTasks({ signal: neverAborted }, async (tasks) => {
    tasks.start(async ({ signal }) => {
      await untilAborted(signal).catch(() => {});
      tasks.start(async ({ signal: late }) => {
        await Bun.sleep(5);
        steps.push(`late, aborted: ${late.aborted}`);
      });
    });
    return "a result";
  });
  expect([result, ...steps]).toEqual(["a result", "late, aborted: true"]);
});

test("a task's result is available to the body and to other tasks", async () => {
  const sum = await withTasks({ signal: neverAborted }, async (tasks) => {
    const one = tasks.start(async () => 1);
    const two = tasks.start(async () => 1 + (await one.result()));
    return (await one.result()) + (await two.result());
  });
  expect(sum).toBe(3);
});

test("a task's failure reaches everyone who waits for its result", async () => {
  const failure = new Error("no result");
  const seen: unknown[] = [];
  const outcome = withTasks({ signal: neverAborted }, async (tasks) => {
    const failing = tasks.start(async () => Promise.reject(failure));
    tasks.start(async () => failing.result().catch((error: unknown) => void seen.push(error)));
    await failing.result();
  });
  expect((await failureOf(outcome)) as Error).toBe(failure);
  expect(seen).toEqual([failure]);
});

test("an abort from outside reaches every task and is thrown", async () => {
  const outer = new AbortController();
  const reason = new Error("enough");
  const seen: unknown[] = [];
  const outcome = withTasks(outer, async (tasks) => {
    tasks.start(async ({ signal }) =>
      untilAborted(signal).catch((error: unknown) => void seen.push(error)),
    );
    outer.abort(reason);
    await untilAborted(tasks.work.signal);
  });
  // The body began to listen only after the abort.
  const body = withTasks(outer, async (tasks) => tasks.work.signal.throwIfAborted());
  expect((await failureOf(body)) as Error).toBe(reason);
  outcome.catch(() => {});
  expect(seen).toEqual([reason]);
});

const interrupted = async (body: string, ...tasks: readonly string[]): Promise<unknown> => {
  const outer = new AbortController();
  const reason = new Error("too late");
  const saying = async (text: string, signal: AbortSignal): Promise<never> => {
    await untilAborted(signal).catch(() => {});
    throw text === "" ? reason : new Error(text, { cause: reason });
  };
  const outcome = withTasks(outer, async (group) => {
    for (const text of tasks) group.start(async ({ signal }) => saying(text, signal));
    queueMicrotask(() => outer.abort(reason));
    await saying(body, group.work.signal);
  });
  return (await failureOf(outcome)).message;
};

test.each([
  ["the body", ["in the body", "in a task"], "in the body"],
  [
    "the first task that does if the body doesn't",
    ["", "", "in a task", "in another"],
    "in a task",
  ],
  ["nobody", ["", ""], "too late"],
])("what the abort interrupted is said by %s", async (_, [body, ...tasks], said) => {
  expect(await interrupted(body!, ...tasks)).toBe(said);
});
