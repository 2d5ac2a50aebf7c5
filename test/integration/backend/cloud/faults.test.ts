import { expect, test } from "bun:test";
import { createCloudBackend } from "../../../../src/backend/cloud/cloud-backend.ts";
import type { ClusterError } from "../../../../src/errors.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import {
  type Clock,
  type Progress,
  systemClock,
  passedMs,
} from "../../../../src/system/runtime.ts";
import type { Fault } from "../../../local-cloud/endpoint/faults.ts";
import {
  type CloudFixture,
  createTestCluster,
  leftIn,
  newRequest,
  nothing,
  openFixture,
  region,
  type RequestChanges,
} from "../../../support/cloud-fixture.ts";
import { longEnough } from "../../../support/long-enough.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** Creates a cluster with these faults. Resolves with the cluster or the error. */
async function create(fixture: CloudFixture, faults: readonly Fault[], changes: RequestChanges) {
  for (const fault of faults) fixture.cloud.faults.add(fault);
  const backend = await fixture.open(region);
  const request = fixture.request("default", changes);
  const outcome = await fixture
    .create(backend, request, neverAborted)
    .catch((error: unknown) => error);
  return { outcome, request };
}

// Shows R100.
test.each(["CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "RunInstances"])(
  "if the answer to %s is lost, the request is repeated, and nothing is created twice",
  async (action) => {
    await using fixture = await openFixture({});
    const { outcome } = await create(
      fixture,
      [{ action, when: "after", times: 1, lost: true }],
      {},
    );
    expect(outcome).toMatchObject({ id: "default", state: "running" });
    expect(leftIn(fixture.cloud)).toEqual({ machines: 3, groups: 1 });
    expect(
      fixture.cloud.requests.entries.filter(({ outcome: answer }) => answer === "lost"),
    ).toHaveLength(1);
  },
);

// Shows R100.
test.each<Fault & { readonly what: string }>([
  {
    what: "a poll",
    action: "DescribeInstances",
    when: "before",
    times: 10,
    skip: 2,
    code: "ServiceUnavailable",
  },
  { what: "the launch's answers", action: "RunInstances", when: "after", times: 10, lost: true },
])(
  "an outage longer than the SDK's retries of $what is shown and waited out, and nothing is created twice",
  async ({ what: _, ...fault }) => {
    await using fixture = await openFixture({});
    const { outcome } = await create(fixture, [fault], {
      counts: { master: 2, agent: 0, public_agent: 0 },
    });
    expect(outcome).toMatchObject({ id: "default", state: "running" });
    expect(leftIn(fixture.cloud)).toEqual({ machines: 2, groups: 1 });
    const shown = fixture.told.filter((line) =>
      line.startsWith("waiting: waiting for the cloud's API: "),
    );
    expect(shown).toEqual([expect.stringContaining(`ec2:${fault.action}`)]);
  },
);

test("throttling is waited out", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.behaviour.change({ throttle: { burst: 4, perSecond: 5 } });
  const { outcome } = await create(fixture, [], {});
  expect(outcome).toMatchObject({ id: "default", state: "running" });
  const refused = fixture.cloud.requests.entries.filter(
    (entry) => entry.outcome === "RequestLimitExceeded",
  );
  expect(refused.length).toBeGreaterThan(0);
});

test("machines whose ids are not visible yet count as pending, not as gone", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.behaviour.change({
    instancesVisibleAfterMs: 900,
    tagsVisibleAfterMs: 1200,
    groupsVisibleAfterMs: 800,
  });
  const { outcome } = await create(fixture, [], {});
  expect(outcome).toMatchObject({ id: "default", state: "running" });
});

test("machines that are not visible yet are terminated as well", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.behaviour.change({ instancesVisibleAfterMs: 1500, tagsVisibleAfterMs: 1800 });
  const refusal = {
    action: "AuthorizeSecurityGroupIngress",
    when: "before",
    times: 1,
    code: "RulesPerSecurityGroupLimitExceeded",
  } as const;
  const { outcome } = await create(fixture, [refusal], {});
  expect(outcome).toMatchObject({
    id: "capacity-lacking",
    facts: { code: "RulesPerSecurityGroupLimitExceeded" },
  });
  expect(fixture.cloud.instances()).toHaveLength(3);
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("if a zone has no capacity, the next one is used", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.behaviour.change({ zoneCapacity: { "us-west-2a": 0, "us-west-2b": 2 } });
  const { outcome } = await create(fixture, [], {
    counts: { master: 1, agent: 3, public_agent: 0 },
  });
  expect(outcome).toMatchObject({ state: "running" });
  const zones = new Set(fixture.cloud.instances().map(({ zone }) => zone));
  expect(zones.has("us-west-2a")).toBe(false);
  expect(fixture.cloud.instances()).toHaveLength(4);
});

test("without capacity in any zone, those tried are named, and machines of the other roles are terminated", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.behaviour.change({
    zoneCapacity: { "us-west-2a": 1, "us-west-2b": 1, "us-west-2c": 1, "us-west-2d": 1 },
  });
  const { outcome } = await create(fixture, [], {
    counts: { master: 1, agent: 2, public_agent: 0 },
  });
  const zones = ["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"];
  const facts = {
    region,
    zones: expect.arrayContaining(zones),
    instanceType: "m5.large",
    count: 2,
  };
  expect(outcome).toMatchObject({ id: "capacity-lacking", exitCode: 1, facts });
  expect((outcome as ClusterError).message).toContain(
    "us-west-2a, us-west-2b, us-west-2c: InsufficientInstanceCapacity; us-west-2d: Unsupported",
  );
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("the error about the account's limit names what was requested", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.behaviour.change({ vcpuLimit: 4 });
  const { outcome } = await create(fixture, [], {
    counts: { master: 1, agent: 40, public_agent: 0 },
  });
  expect(outcome).toMatchObject({ id: "capacity-lacking", facts: { count: 40, role: "agent" } });
  expect((outcome as ClusterError).message).toContain("41 × m5.large");
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

// Shows R103.
test("a machine that terminates while it starts is reported with the cloud's reason", async () => {
  await using fixture = await openFixture({});
  const message = "Client.VolumeLimitExceeded: Volume limit exceeded";
  const fault = {
    action: "RunInstances",
    when: "launch",
    times: 1,
    code: "Client.VolumeLimitExceeded",
    message,
  } as const;
  const { outcome, request } = await create(fixture, [fault], {});
  expect(outcome).toMatchObject({ id: "machine-failed" });
  expect((outcome as ClusterError).facts).toMatchObject({
    node: expect.stringMatching(/^\w+_0$/),
    machine: expect.stringMatching(/^i-[0-9a-f]{17}$/),
    reason: message,
  });
  expect(request.failures).toHaveLength(1);
  expect(request.failures[0]?.nodes.some((node) => node.stateReason === message)).toBe(true);
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

// Shows R103.
test("a first boot that fails is reported with the last lines of its log", async () => {
  await using fixture = await openFixture({});
  const firstContact = { pattern: "e2e-first-contact", replaceHostKey: true };
  fixture.cloud.answers.replace([
    firstContact,
    {
      pattern: "e2e-first-boot",
      status: 4,
      stdout: "status: error\nFailed to run module bootcmd\n",
    },
  ]);
  const { outcome } = await create(fixture, [], {
    counts: { master: 1, agent: 0, public_agent: 0 },
  });
  expect(outcome).toMatchObject({ id: "machine-failed", facts: { node: "master_0", status: 4 } });
  expect((outcome as ClusterError).message).toEndWith(
    "\n  status: error\n  Failed to run module bootcmd",
  );
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("harmless warnings of cloud-init are only shown as notes", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.answers.replace([
    { pattern: "e2e-first-contact", replaceHostKey: true },
    { pattern: "e2e-first-boot", status: 3, stdout: "status: error\nlocale\n" },
  ]);
  const { outcome } = await create(fixture, [], {
    counts: { master: 1, agent: 0, public_agent: 0 },
  });
  expect(outcome).toMatchObject({ state: "running" });
  expect(fixture.told.map(unmarked)).toContain(
    "detail: master_0: cloud-init reported: status: error\nlocale",
  );
});

test("the error about a missing permission names the action, and the log contains the encoded message", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.behaviour.change({ deniedActions: ["RunInstances"] });
  const { outcome } = await create(fixture, [], {});
  expect(outcome).toMatchObject({
    id: "not-permitted",
    exitCode: 5,
    facts: { action: "RunInstances", region },
  });
  expect((outcome as ClusterError).message).toContain(
    "the variables CLOUD_ACCESS_KEY_ID, CLOUD_SECRET_ACCESS_KEY",
  );
  expect(
    fixture.told.some((line) => line.startsWith("detail: Encoded authorization message: ")),
  ).toBe(true);
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("what a policy of the organization forbids, no permission allows", async () => {
  await using fixture = await openFixture({});
  const denialReason = "with an explicit deny in a service control policy";
  fixture.cloud.behaviour.change({ deniedActions: ["RunInstances"], denialReason });
  const { outcome } = await create(fixture, [], {});
  expect(outcome).toMatchObject({ id: "not-permitted", exitCode: 5 });
  expect((outcome as ClusterError).hint).toStartWith(
    "The service control policy forbids ec2:RunInstances for this request",
  );
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test.each([
  [
    "the limit on groups",
    { groupLimit: 1 },
    "capacity-lacking",
    /limit for security groups.*Delete security groups/,
  ],
  [
    "a tag policy",
    { tagPolicy: { owner: ["them"] } },
    "not-permitted",
    /does not allow these tags.*`customTags`/,
  ],
] as const)("%s is named as such, and nothing is left", async (_, behaviour, id, text) => {
  await using fixture = await openFixture({});
  fixture.cloud.behaviour.change(behaviour);
  const options = {
    instanceType: "m5.large",
    customTags: [{ key: "owner", value: "me" }],
    adminCidrs: [],
  };
  const { outcome } = await create(fixture, [], { options });
  const { message, hint } = outcome as ClusterError;
  expect(outcome).toMatchObject({ id });
  expect(`${message} ${hint}`).toMatch(text);
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("too many ranges for one group are the user's, not the cloud's", async () => {
  await using fixture = await openFixture({});
  const adminCidrs = Array.from({ length: 30 }, (_, index) => `192.0.2.${index}`);
  const { outcome } = await create(fixture, [], {
    options: { instanceType: "m5.large", customTags: [], adminCidrs },
  });
  expect(outcome).toMatchObject({
    id: "capacity-lacking",
    hint: expect.stringContaining("`adminCidrs`"),
  });
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("an image that doesn't exist in the region is an error", async () => {
  await using fixture = await openFixture({});
  const options = {
    instanceType: "m5.large",
    customTags: [],
    adminCidrs: [],
    image: { id: "ami-0123456789abcdef0", user: "me" },
  };
  const { outcome } = await create(fixture, [], { options });
  expect(outcome).toMatchObject({
    id: "image-not-found",
    facts: { code: "InvalidAMIID.NotFound" },
  });
  expect(fixture.cloud.requests.counts()).not.toHaveProperty("CreateSecurityGroup");
});

/** Creates a master that refuses logins. Once it has refused one, the creation's time is almost over. */
async function createTooSlowly(fixture: CloudFixture, changes: RequestChanges) {
  fixture.cloud.behaviour.change({ bootDelayMs: 600_000 });
  const limitMs = 300_000;
  const passed = { ms: 0 };
  const clock: Clock = {
    ...systemClock,
    now: () => Date.now() + passed.ms,
    passed: () => performance.now() + passed.ms,
  };
  const detail: Progress["detail"] = (level, text) => {
    if (text.includes("connection refused")) passed.ms = limitMs - 1;
    fixture.runtime.progress.detail(level, text);
  };
  const runtime = { ...fixture.runtime, clock, progress: { ...fixture.runtime.progress, detail } };
  const backend = await createCloudBackend({ ...runtime, signal: neverAborted }, { region });
  const counts = { master: 1, agent: 0, public_agent: 0 };
  const request = newRequest("default", {
    counts,
    deadlineMs: passedMs(systemClock) + limitMs,
    ...changes,
  });
  return createTestCluster({ ...runtime, signal: neverAborted }, backend, request).catch(
    (error: unknown) => error,
  );
}

test("at the deadline, the error says what create waited for", async () => {
  await using fixture = await openFixture({});
  const outcome = await createTooSlowly(fixture, {});
  expect(outcome).toMatchObject({
    id: "deadline-passed",
    exitCode: 4,
    facts: { node: "master_0", port: 22 },
  });
  expect((outcome as ClusterError).message).toContain("connection refused");
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("so does the error if the deadline passes before machines start", async () => {
  await longEnough(20_000, async (limitMs) => {
    await using fixture = await openFixture({});
    fixture.cloud.behaviour.change({ pendingMs: 3_600_000 });
    const { outcome } = await create(fixture, [], {
      counts: { master: 1, agent: 0, public_agent: 0 },
      deadlineMs: passedMs(systemClock) + limitMs,
    });
    expect(outcome).toMatchObject({ id: "deadline-passed", facts: { cluster: "default" } });
    expect(leftIn(fixture.cloud)).toEqual(nothing);
    return (outcome as ClusterError).message.includes("waiting for 1 of 1 machine to start");
  });
});

test("if a machine never answers, the hint is that its group may not admit this address", async () => {
  await using fixture = await openFixture({});
  const options = { instanceType: "m5.large", customTags: [], adminCidrs: ["192.0.2.0/24"] };
  const outcome = await createTooSlowly(fixture, { options });
  expect((outcome as ClusterError).message).toMatch(
    /connection refused\. .* 127\.0\.0\.1, .* 192\.0\.2\.0\/24\.$/,
  );
});
