import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { retryingApi } from "../../../../../src/backend/cloud/api/open-api.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scriptedClock } from "../../../../support/scripted-clock.ts";

const outage = new ClusterError("cloud-failed", "It did not answer.", { transient: true });
const refusal = new ClusterError("cloud-failed", "It refused.");

/** An API that fails with what `failures` says for the moment, in a time that passes only while somebody sleeps. */
function scripted(failures: (nowMs: number) => ClusterError | undefined) {
  const clock = scriptedClock();
  const shown: string[] = [];
  const call: CloudApi["call"] = async () => {
    const failure = failures(clock.nowMs);
    if (failure !== undefined) throw failure;
    return { $metadata: {} } as never;
  };
  const api: CloudApi = {
    region: "us-west-2",
    credentialSource: "a test",
    now: () => clock.nowMs,
    call,
  };
  const patient = retryingApi(api, {
    clock,
    progress: { waiting: (text: string) => void shown.push(text) },
  });
  return { ask: async () => patient.call("DescribeRegions", {}, neverAborted), shown, clock };
}

test("an outage of minutes is waited out; one line says what is waited for, and it is cleared", async () => {
  const { ask, shown, clock } = scripted((nowMs) => (nowMs < 240_000 ? outage : undefined));
  expect(await ask()).toEqual({ $metadata: {} });
  expect(clock.nowMs).toBeLessThan(260_000);
  expect(shown).toEqual(["waiting for the cloud's API: It did not answer", ""]);
});

test("one that doesn't end is given up after five minutes, and no longer shown", async () => {
  const { ask, shown, clock } = scripted(() => outage);
  expect(await failureOf(ask())).toBe(outage);
  expect(clock.nowMs).toBeGreaterThan(280_000);
  expect(clock.nowMs).toBeLessThanOrEqual(300_000);
  expect(shown.at(-1)).toBe("");
});

test("a refusal is final", async () => {
  const { ask, shown, clock } = scripted(() => refusal);
  expect(await failureOf(ask())).toBe(refusal);
  expect([clock.nowMs, shown]).toEqual([0, []]);
});
