import { expect, test } from "bun:test";
import { createSemaphore } from "../../../src/system/concurrency.ts";
import { failureOf } from "../../support/failure-of.ts";

const { signal } = new AbortController();

test("never more than the limit run at once, and all come to their turn in order", async () => {
  const semaphore = createSemaphore(3);
  const running = { now: 0, most: 0 };
  const begun: number[] = [];
  const task = async (index: number): Promise<number> => {
    begun.push(index);
    running.now += 1;
    running.most = Math.max(running.most, running.now);
    await Bun.sleep(1);
    running.now -= 1;
    return index;
  };
  const indexes = Array.from({ length: 20 }, (_, index) => index);
  await semaphore.run(async () => {}, signal);
  expect(
    await Promise.all(indexes.map((index) => semaphore.run(() => task(index), signal))),
  ).toEqual(indexes);
  expect(running.most).toBe(3);
  expect(begun).toEqual(indexes);
});

test("a failed task gives its turn back", async () => {
  const semaphore = createSemaphore(1);
  const failing = async (): Promise<never> => {
    throw new Error("failed");
  };
  expect((await failureOf(semaphore.run(failing, signal))).message).toBe("failed");
  expect(await semaphore.run(async () => "next", signal)).toBe("next");
});

test("who is aborted while waiting leaves the queue", async () => {
  const semaphore = createSemaphore(1);
  const first = Promise.withResolvers<string>();
  const waiter = new AbortController();
  const running = semaphore.run(() => first.promise, signal);
  const waiting = semaphore.run(async () => "never", waiter.signal);
  const last = semaphore.run(async () => "last", signal);
  waiter.abort(new Error("given up"));
  expect((await failureOf(waiting)).message).toBe("given up");
  first.resolve("first");
  expect(await Promise.all([running, last])).toEqual(["first", "last"]);
});

test("after an abort, a task doesn't start even if it is its turn", async () => {
  const begun: string[] = [];
  const aborted = AbortSignal.abort(new Error("given up"));
  const running = createSemaphore(1).run(async () => void begun.push("task"), aborted);
  expect((await failureOf(running)).message).toBe("given up");
  expect(begun).toEqual([]);
});

test("an abort of a task that has begun leaves those that wait in the queue", async () => {
  const semaphore = createSemaphore(1);
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const begun = new AbortController();
  const running = [
    semaphore.run(() => first.promise, signal),
    semaphore.run(() => second.promise, begun.signal),
    semaphore.run(async () => "last", signal),
  ];
  first.resolve("first");
  await running[0];
  begun.abort(new Error("interrupted"));
  second.resolve("second");
  expect(await Promise.all(running)).toEqual(["first", "second", "last"]);
});
