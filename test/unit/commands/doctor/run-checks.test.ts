import { expect, test } from "bun:test";
import { runChecks } from "../../../../src/commands/doctor/execute-doctor.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { type Check, type Outcome, pass, skip, warn } from "../../../../src/model/check.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { outcomeText } from "../../../support/outcome-text.ts";

const runtime = { clock: systemClock, progress: silentProgress, limitMs: 5_000 };

const check = (name: string, run: Check["run"], limitMs = 5_000): Check => ({ name, limitMs, run });
const after = (ms: number, outcome: Outcome) => async (signal: AbortSignal) => {
  await systemClock.sleep(ms, signal);
  return outcome;
};
const forEver = () => new Promise<Outcome>(() => {});

test("all checks run side by side, and are told in the order given", async () => {
  const quickBegan = Promise.withResolvers<void>();
  const checks = [
    check("slow", async () => {
      await quickBegan.promise;
      return pass("done");
    }),
    check("quick", async () => {
      quickBegan.resolve();
      return warn("look", "do this");
    }),
    check("middling", after(30, skip("no need"))),
  ];
  const results = await runChecks({ ...runtime, signal: neverAborted }, checks);
  expect(results.map(({ name, status }) => `${name} ${status}`)).toEqual([
    "slow pass",
    "quick warn",
    "middling skip",
  ]);
  expect(results[1]).toMatchObject({ message: "look", remedy: "do this" });
});

test("a check that crashes has failed, whether at once or later; the others go on", async () => {
  const checks = [
    check("at once", () => {
      throw new TypeError("undefined is not a function");
    }),
    check("later", async () => {
      await systemClock.sleep(1, neverAborted);
      throw new RangeError("too far");
    }),
    check("well", after(5, pass("done"))),
  ];
  const results = await runChecks({ ...runtime, signal: neverAborted }, checks);
  expect(results.map(({ status, message }) => unmarked(`${status}: ${message}`))).toEqual([
    "fail: The check failed with an internal error: TypeError: undefined is not a function",
    "fail: The check failed with an internal error: RangeError: too far",
    "pass: done",
  ]);
  expect(outcomeText(results[0]!)).toContain("report this bug");
});

test("an error that people can act on fails the check by its own words", async () => {
  const error = new ClusterError("image-not-found", "There is no image.", {
    hint: "Choose another.",
  });
  const results = await runChecks({ ...runtime, signal: neverAborted }, [
    check("image", () => Promise.reject(error)),
  ]);
  expect(outcomeText(results[0]!)).toBe("fail: There is no image. → Choose another.");
});

test.each([
  ["its own limit", 20, 5_000],
  ["the limit of all together", 5_000, 20],
])("a check that passes %s has failed, and says so", async (_which, ownMs, allMs) => {
  const checks = [check("hangs", forEver, ownMs), check("well", after(1, pass("done")), ownMs)];
  const results = await runChecks({ ...runtime, limitMs: allMs, signal: neverAborted }, checks);
  expect(results[0]).toMatchObject({
    status: "fail",
    message: "The check did not finish within 0.02 s.",
  });
  expect(results[1]).toMatchObject({ status: "pass" });
});

test("at its limit a check is told to stop", async () => {
  const told = Promise.withResolvers<void>();
  const listen = (signal: AbortSignal): Promise<Outcome> => {
    signal.addEventListener("abort", () => told.resolve());
    return forEver();
  };
  await runChecks({ ...runtime, signal: neverAborted }, [check("hangs", listen, 5)]);
  await told.promise;
});

test("an abort ends all of it with its reason", async () => {
  const controller = new AbortController();
  const reason = new Error("interrupted");
  const work = runChecks({ ...runtime, signal: controller.signal }, [
    check("deaf", forEver),
    check("listens", after(5_000, pass(""))),
  ]);
  controller.abort(reason);
  expect(await work.catch((error: unknown) => error)).toBe(reason);
});
