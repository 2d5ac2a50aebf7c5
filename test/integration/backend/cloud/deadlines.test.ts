/** If the API doesn't answer, create and wait end at their deadline, and name the call that they waited for. */
import { expect, test } from "bun:test";
import { waitForCluster } from "../../../../src/cluster/wait-for-cluster.ts";
import type { Fault } from "../../../local-cloud/endpoint/faults.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { leftIn, nothing, openFixture, region } from "../../../support/cloud-fixture.ts";
import { longEnough } from "../../../support/long-enough.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { passedMs, systemClock } from "../../../../src/system/runtime.ts";

const oneNode = { counts: { master: 1, agent: 0, public_agent: 0 } } as const;
const tooLate = 'Creating cluster "default" exceeded its time limit. It was still waiting for';

// Shows R105.
test.each<[action: string, fault: Partial<Fault>, waitedFor: string]>([
  ["DescribeSubnets", { hangs: true }, "ec2:DescribeSubnets in region us-west-2."],
  ["CreateSecurityGroup", { hangs: true }, "ec2:CreateSecurityGroup in region us-west-2."],
  ["RunInstances", { hangs: true }, "ec2:RunInstances in region us-west-2."],
  ["DescribeInstances", { hangs: true, skip: 2 }, "ec2:DescribeInstances in region us-west-2."],
])(
  "create ends at its deadline if %s hangs, and leaves nothing",
  async (action, fault, waitedFor) =>
    longEnough(6_000, async (limitMs) => {
      await using fixture = await openFixture({});
      const { cloud } = fixture;
      cloud.faults.add({ action, when: "before", times: 1, ...fault });
      const backend = await fixture.open(region);
      const request = fixture.request("default", {
        ...oneNode,
        deadlineMs: passedMs(systemClock) + limitMs,
      });
      const failure = await failureOf(fixture.create(backend, request, neverAborted));
      expect(leftIn(cloud)).toEqual(nothing);
      if ((cloud.requests.counts()[action] ?? 0) <= (fault.skip ?? 0)) return false;
      expect([failure.id, failure.message]).toEqual(["deadline-passed", `${tooLate} ${waitedFor}`]);
      return true;
    }),
);

// Shows R105.
test("wait ends at its deadline if the API hangs from the start", async () =>
  longEnough(3_000, async (limitMs) => {
    await using fixture = await openFixture({});
    const { cloud, runtime } = fixture;
    cloud.faults.add({ action: "DescribeInstances", when: "before", times: "always", hangs: true });
    const backend = await fixture.open(region);
    const request = {
      clusterId: "default",
      login: undefined,
      skipHttpChecks: true,
      deadlineMs: passedMs(systemClock) + limitMs,
    };
    const failure = await failureOf(
      waitForCluster({ ...runtime, signal: neverAborted }, backend, request),
    );
    if (cloud.requests.counts()["DescribeInstances"] === undefined) return false;
    expect([failure.id, failure.message]).toEqual([
      "deadline-passed",
      'Waiting for cluster "default" exceeded its time limit. It was still waiting for ec2:DescribeInstances in region us-west-2.',
    ]);
    return true;
  }));
