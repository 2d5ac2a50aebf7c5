import { expect, test } from "bun:test";
import { mapConcurrently, once } from "../../../src/system/concurrency.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";

test("the results are in the items' order, and no more tasks than allowed run at once", async () => {
  const running = { now: 0, most: 0 };
  const task = async (item: string, index: number): Promise<string> => {
    running.now += 1;
    running.most = Math.max(running.most, running.now);
    // Later items end first.
    await Bun.sleep(10 - index);
    running.now -= 1;
    return `${index}${item}`;
  };
  const items = ["a", "b", "c", "d", "e", "f", "g"];
  expect(await mapConcurrently(items, 3, task, neverAborted)).toEqual(
    items.map((item, index) => `${index}${item}`),
  );
  expect(running).toEqual({ now: 0, most: 3 });
  expect(await mapConcurrently([], 3, task, neverAborted)).toEqual([]);
});

test("after the first failure nothing begins, and what has begun is awaited", async () => {
  const steps: string[] = [];
  const other = Promise.withResolvers<void>();
  const task = async (item: string): Promise<void> => {
    steps.push(item);
    if (item === "a") {
      await other.promise;
      steps.push("a has ended");
      throw new Error("later");
    }
    other.resolve();
    throw new Error("first");
  };
  expect((await failureOf(mapConcurrently(["a", "b", "c"], 2, task, neverAborted))).message).toBe(
    "first",
  );
  expect(steps).toEqual(["a", "b", "a has ended"]);
});

test("after an abort no task begins, and its reason is thrown", async () => {
  const stop = new AbortController();
  const begun: number[] = [];
  const task = async (item: number): Promise<void> => {
    begun.push(item);
    stop.abort(new Error("enough"));
  };
  expect((await failureOf(mapConcurrently([1, 2, 3], 1, task, stop.signal))).message).toBe(
    "enough",
  );
  expect(begun).toEqual([1]);
});

test("what is asked once has one answer, or one failure", async () => {
  const answers = [Promise.resolve(1), Promise.reject(new Error("no"))];
  const [ask, fail] = [once(() => answers.shift()!), once(() => answers.shift()!)];
  expect(await Promise.all([ask(), ask()])).toEqual([1, 1]);
  for (let times = 0; times < 2; times += 1) expect((await failureOf(fail())).message).toBe("no");
  expect(answers).toEqual([]);
});
