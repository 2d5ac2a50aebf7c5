import { afterEach, expect, mock, spyOn, test } from "bun:test";
import { cloudFacts } from "../../../../../src/backend/cloud/checks/facts.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scriptedCloud } from "../../../../support/scripted-cloud.ts";

const environment = {
  HOME: "/nonexistent",
  CLOUD_ACCESS_KEY_ID: "AKID",
  CLOUD_SECRET_ACCESS_KEY: "secret",
};
const defaults = { region: "us-west-2", distribution: "debian-12", instanceType: "m5.large" };
const factsUntil = (signal: AbortSignal) =>
  cloudFacts({ ...scriptedCloud([], []).runtime, environment, signal }, defaults);

/** All time limits but the first `lasting` ones pass at once. */
function endLimits(lasting: number): void {
  const limits = { set: 0 };
  spyOn(AbortSignal, "timeout").mockImplementation(() => {
    limits.set += 1;
    return limits.set > lasting
      ? AbortSignal.abort(new Error("The operation timed out."))
      : neverAborted;
  });
}
afterEach(() => mock.restore());

test.each([
  [0, "Finding credentials took longer than 15 s."],
  [1, "A request to the cloud's API took longer than 15 s."],
])("after %d steps in time, the next one that is too slow is named", async (lasting, message) => {
  endLimits(lasting);
  expect(await failureOf(factsUntil(neverAborted).instances())).toMatchObject({
    id: "deadline-passed",
    message,
  });
});

test.each([0, 5])(
  "an interrupt is not taken for a limit that has passed (%d limits last)",
  async (lasting) => {
    endLimits(lasting);
    const reason = new Error("interrupted");
    expect((await failureOf(factsUntil(AbortSignal.abort(reason)).instances())) as Error).toBe(
      reason,
    );
  },
);
