import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { retryingApi } from "../../../../../src/backend/cloud/api/open-api.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const outage = new ClusterError("cloud-failed", "It did not answer.", { transient: true });
const refusal = new ClusterError("cloud-failed", "It refused.");

/** An API that fails with what `failures` says for the moment, in a time that passes only while somebody sleeps. */
function scripted(failures: (nowMs: number) => ClusterError | undefined) {
  const time = { nowMs: 0 };
  const shown: string[] = [];
  const clock = { now: () => time.nowMs, sleep: async (ms: number) => void (time.nowMs += ms) };
  const call: CloudApi["call"] = async () => {
    const failure = failures(time.nowMs);
    if (failure !== undefined) throw failure;
    return { $metadata: {} } as never;
  };
  const api: CloudApi = { region: "us-west-2", credentialSource: "a test", now: () => time.nowMs, call };
  const patient = retryingApi(api, { clock, progress: { waiting: (text: string) => void shown.push(text) } });
  return { ask: async () => patient.call("DescribeRegions", {}, neverAborted), shown, time };
}

test("an outage of minutes is waited out; one line says what is waited for, and it is cleared", async () => {
  const { ask, shown, time } = scripted((nowMs) => (nowMs < 240_000 ? outage : undefined));
  expect(await ask()).toEqual({ $metadata: {} });
  expect(time.nowMs).toBeLessThan(260_000);
  expect(shown).toEqual(["waiting for the cloud's API: It did not answer", ""]);
});

test("one that doesn't end is given up after five minutes, and no longer shown", async () => {
  const { ask, shown, time } = scripted(() => outage);
  expect(await failureOf(ask())).toBe(outage);
  expect(time.nowMs).toBeGreaterThan(280_000);
  expect(time.nowMs).toBeLessThanOrEqual(300_000);
  expect(shown.at(-1)).toBe("");
});

test("a refusal is final", async () => {
  const { ask, shown, time } = scripted(() => refusal);
  expect(await failureOf(ask())).toBe(refusal);
  expect([time.nowMs, shown]).toEqual([0, []]);
});
