/** What a creation sees of its own machines while the API's answers don't agree yet. */
import { expect, test } from "bun:test";
import type { Instance } from "@aws-sdk/client-ec2";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { toTags, type TagValues } from "../../../../../src/backend/cloud/tags.ts";
import { lookAtMachines } from "../../../../../src/backend/cloud/launch/look-at-machines.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const creationId = "0123456789abcdef";
const tags: TagValues = {
  clusterId: "default",
  creationId,
  role: "master",
  indexBase: "0",
  variant: "oss",
  sshUser: "admin",
};

const instance = (id: string, given: TagValues, launchTime = "2026-01-01T00:00:00Z"): Instance => ({
  InstanceId: id,
  LaunchTime: new Date(launchTime),
  State: { Name: "running" },
  PublicIpAddress: "192.0.2.1",
  SecurityGroups: [{ GroupId: "sg-00000001", GroupName: "cluster-e2e-default" }],
  Tags: toTags("x", given, []),
});
const own = (given: TagValues): Instance => instance("i-0123456789abcdef0", given);

function watch(answers: readonly (readonly Instance[])[], machineIds = ["i-0123456789abcdef0"]) {
  const rest = [...answers];
  const clock = { nowMs: 0 };
  const api = {
    region: "us-west-2",
    now: () => clock.nowMs,
    call: async () =>
      Promise.resolve({ Reservations: [{ Instances: rest.length > 1 ? rest.shift() : rest[0] }] }),
  } as unknown as CloudApi;
  const watching = {
    clusterId: "default",
    creationId,
    machineIds,
    regionFolder: { region: "us-west-2", root: "/" },
    launchedMs: 5000,
    withoutAddress: new Map<string, number>(),
  };
  const time = { now: () => clock.nowMs, sleep: async () => {} };
  return { look: async () => lookAtMachines(api, watching, time, neverAborted), clock };
}

test("a machine whose tags are there by half counts as not seen yet", async () => {
  const { role: _, ...half } = tags;
  const { look } = watch([[own(half)], [own(tags)]]);
  expect(await look()).toBeUndefined();
  expect((await look())?.nodes.map(({ id }) => id)).toEqual(["i-0123456789abcdef0"]);
});

test("an own machine is never another creation's, whatever its tags say for the moment", async () => {
  const { creationId: _, ...half } = tags;
  const later = instance(
    "i-0123456789abcdef1",
    { ...tags, creationId: "fedcba9876543210" },
    "2026-01-01T00:00:05Z",
  );
  const { look } = watch([
    [own({ ...tags, creationId: "0000000000000000" })],
    [own(half), later],
    [later],
    [own(tags), later],
  ]);
  expect([await look(), await look(), await look()]).toEqual([undefined, undefined, undefined]);
  expect((await look())?.nodes.map(({ id }) => id)).toEqual(["i-0123456789abcdef0"]);
});

// Shows R104.
test("a machine that runs for two minutes without a public address has failed", async () => {
  const { PublicIpAddress: _, ...bare } = own(tags);
  const { look, clock } = watch([[{ ...bare, State: { Name: "pending" } }], [bare]]);
  await look();
  clock.nowMs = 100_000;
  expect((await look())?.nodes[0]?.publicAddress).toBeUndefined();
  clock.nowMs = 219_000;
  await look();
  clock.nowMs = 221_000;
  const error = await failureOf(look());
  expect([error.id, error.message, error.hint]).toEqual([
    "machine-failed",
    "The cloud gave master_0 (i-0123456789abcdef0) no public address in two minutes.",
    "Pass a subnet that assigns public addresses with `subnetId`. Or the account has reached its limit of addresses.",
  ]);
});

test("an address that comes late is in time", async () => {
  const { PublicIpAddress: _, ...bare } = own(tags);
  const { look, clock } = watch([[bare], [own(tags)]]);
  await look();
  clock.nowMs = 121_000;
  expect((await look())?.nodes[0]?.publicAddress).toBe("192.0.2.1");
});

test("one that never gets the tags that it was given is told after two minutes", async () => {
  const { look, clock } = watch([[own({ ...tags, sshUser: "a b" })]]);
  expect(await look()).toBeUndefined();
  clock.nowMs = 126_000;
  const error = await failureOf(look());
  expect([error.id, error.message]).toEqual([
    "machine-failed",
    "The cloud launched i-0123456789abcdef0, but after two minutes it still does not list it with its tags.",
  ]);
});

test("an older instance to which somebody has copied the tags takes no node's place", async () => {
  const { look } = watch([
    [instance("i-00000000000000bad", tags, "2020-01-01T00:00:00Z"), own(tags)],
  ]);
  expect((await look())?.nodes.map(({ id }) => id)).toEqual(["i-0123456789abcdef0"]);
});

// Shows R98.
test.each([
  ["launched a moment earlier", true, { launchTime: "2025-12-31T23:59:59Z" }],
  ["launched at the same time with a smaller creation id", true, {}],
  [
    "launched at the same time with a larger creation id",
    false,
    { creationId: "fedcba9876543210" },
  ],
  ["launched a moment later", false, { launchTime: "2026-01-01T00:00:01Z" }],
  ["that is ending", false, { launchTime: "2025-12-31T23:59:59Z", state: "shutting-down" }],
  [
    "past its deadline",
    false,
    { launchTime: "2025-12-31T21:59:59Z", expiresAt: "2025-12-31T23:59:59Z" },
  ],
  [
    "past the deadline in its tag alone",
    true,
    { launchTime: "2025-12-31T22:00:00Z", expiresAt: "2025-12-31T23:59:59Z" },
  ],
  ["of which only the tags are copied", false, { launchTime: "2025-12-31T23:59:59Z", groups: [] }],
  [
    "just at its deadline",
    true,
    { launchTime: "2025-12-31T22:00:00Z", expiresAt: "2026-01-01T00:00:00Z" },
  ],
] as const)("a creation yields to another of its id, %s: %p", async (_, isTaken, changes) => {
  const other = {
    creationId: "0000000000000000",
    launchTime: "2026-01-01T00:00:00Z",
    state: "running" as const,
    ...changes,
  };
  const deadline = "expiresAt" in other ? { expiresAt: other.expiresAt } : {};
  const theirs = (id: string, index: string, launchTime: string): Instance => ({
    ...instance(
      id,
      { ...tags, creationId: other.creationId, indexBase: index, ...deadline },
      launchTime,
    ),
    State: { Name: other.state },
    ...("groups" in other && { SecurityGroups: [] }),
  });
  // Of several machines, the oldest counts.
  const late = "2026-01-01T00:10:00Z";
  const mine = instance("i-0123456789abcdef2", { ...tags, indexBase: "1" }, late);
  const seen = [
    theirs("i-00000001", "1", late),
    theirs("i-00000002", "0", other.launchTime),
    own(tags),
    mine,
  ];
  const { look, clock } = watch([seen], ["i-0123456789abcdef0", "i-0123456789abcdef2"]);
  clock.nowMs = Date.parse("2026-01-01T00:00:00Z");
  if (isTaken) expect((await failureOf(look())).id).toBe("cluster-exists");
  else expect((await look())?.nodes).toHaveLength(2);
});

test("machines may be invisible for two minutes after the launch", async () => {
  const { look, clock } = watch([[]]);
  clock.nowMs = 124_999;
  expect(await look()).toBeUndefined();
  clock.nowMs = 125_000;
  expect((await failureOf(look())).message).toContain("still does not list it");
});

// Shows R103.
test.each([
  [
    "shutting-down",
    "Client.UserInitiatedShutdown: User initiated shutdown",
    "Somebody with access to the account",
  ],
  [
    "terminated",
    "Client.InstanceInitiatedShutdown: Instance initiated shutdown",
    "It powered itself off",
  ],
  [
    "terminated",
    "Client.VolumeLimitExceeded: Volume limit exceeded",
    "The cause may be a limit of the account",
  ],
  ["stopped", undefined, "The cause may be a limit of the account"],
] as const)("a machine that is %s because of %p has failed", async (state, reason, hint) => {
  const StateReason = { Message: reason };
  const { look } = watch([[{ ...own(tags), State: { Name: state }, StateReason }]]);
  const failure = await failureOf(look());
  expect(failure).toMatchObject({ id: "machine-failed", hint: expect.stringContaining(hint) });
  expect(failure.message).toContain(reason ?? "the reason is not known");
});
