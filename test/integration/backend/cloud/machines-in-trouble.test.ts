/** If a machine can't become a node, the creation fails within seconds, with the cloud's reason. */
import { expect, test } from "bun:test";
import { ClusterError } from "../../../../src/errors.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { leftIn, nothing, openFixture, region } from "../../../support/cloud-fixture.ts";
import { longEnough } from "../../../support/long-enough.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { passedMs, systemClock } from "../../../../src/system/runtime.ts";

const oneNode = { counts: { master: 1, agent: 0, public_agent: 0 } } as const;

// Shows R103.
test("a machine that terminates during the configuration is reported at the next poll, with the cloud's reason", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  const polls = { before: 0, afterwards: 0 };
  const countPolls = (): number => cloud.requests.counts()["DescribeInstances"] ?? 0;
  const request = fixture.request("default", {
    ...oneNode,
    complete: async ({ nodes }, signal) => {
      await fixture.terminate(nodes[0]!.id);
      polls.before = countPolls();
      // An installation that doesn't detect it.
      await new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new Error("cut off")), { once: true });
      });
    },
    // Logs are collected as soon as the creation has failed.
    onLogs: async () => void (polls.afterwards = countPolls()),
  });
  const failure = await failureOf(fixture.create(backend, request, neverAborted));
  expect(failure).toMatchObject({ id: "machine-failed", exitCode: 1 });
  expect(failure.message).toMatch(
    /^master_0 \(i-\w+\) stopped before it could be used: .*User initiated shutdown\.$/,
  );
  expect(failure.hint).toContain("terminated it");
  expect(failure.hint).not.toContain("limit");
  expect(request.failures).toHaveLength(1);
  // One poll may have been under way. The others are every five seconds.
  expect(polls.afterwards - polls.before).toBeWithin(1, 4);
  expect(leftIn(cloud)).toEqual(nothing);
});

test("the hint for a machine that powers itself off is to check its clock", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  cloud.behaviour.change({ bootDelayMs: 60_000 });
  const backend = await fixture.open(region);
  const failing = failureOf(
    fixture.create(backend, fixture.request("default", oneNode), neverAborted),
  );
  while (cloud.instances()[0]?.state !== "running") await Bun.sleep(10);
  await cloud.kill(cloud.instances()[0]!.instanceId);
  const { id, message, hint } = await failing;
  expect([id, message]).toEqual([
    "machine-failed",
    expect.stringContaining("Instance initiated shutdown"),
  ]);
  expect(hint).toStartWith(
    "It powered itself off, as every machine does at its deadline. Its clock may be wrong",
  );
});

// Shows R103.
test("a connection that is lost because its machine ended is reported as the end of the machine", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const request = fixture.request("default", {
    ...oneNode,
    complete: async ({ nodes }) => {
      await fixture.terminate(nodes[0]!.id);
      throw new ClusterError("connection-failed", "connection refused", { transient: true });
    },
  });
  const failure = await failureOf(fixture.create(backend, request, neverAborted));
  expect(failure).toMatchObject({ id: "machine-failed" });
  expect(failure.message).toContain("User initiated shutdown");
});

test("a lost connection stays the reason if the cloud can't be asked about the machine", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  const lost = new ClusterError("connection-failed", "connection refused", { transient: true });
  const request = fixture.request("default", {
    ...oneNode,
    complete: async () => {
      cloud.faults.add({
        action: "DescribeInstances",
        when: "before",
        times: 2,
        code: "UnauthorizedOperation",
      });
      throw lost;
    },
  });
  expect(await failureOf(fixture.create(backend, request, neverAborted))).toBe(lost);
});

// Shows R104.
test("a machine without a public address is named as long as it is waited for, and at the deadline", async () =>
  longEnough(8_000, async (limitMs) => {
    await using fixture = await openFixture({});
    fixture.cloud.behaviour.change({ publicAddresses: false });
    const backend = await fixture.open(region);
    const request = fixture.request("default", {
      ...oneNode,
      deadlineMs: passedMs(systemClock) + limitMs,
    });
    const failure = await failureOf(fixture.create(backend, request, neverAborted));
    expect(leftIn(fixture.cloud)).toEqual(nothing);
    if (!fixture.told.includes("waiting: waiting for master_0 to get a public address"))
      return false;
    expect(failure.message).toBe(
      'Creating cluster "default" exceeded its time limit. It was still waiting for master_0 to get a public address.',
    );
    return true;
  }));
