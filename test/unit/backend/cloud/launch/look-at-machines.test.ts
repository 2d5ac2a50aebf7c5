/** What a creation sees of its own machines while the API's answers don't agree yet. */
import { expect, test } from "bun:test";
import type { Instance } from "@aws-sdk/client-ec2";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { toTags, type TagValues } from "../../../../../src/backend/cloud/records/tags.ts";
import { lookAtMachines } from "../../../../../src/backend/cloud/launch/look-at-machines.ts";
import { failureOf } from "../../../../support/failure-of.ts";

const never = new AbortController().signal;
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
  Tags: toTags("x", given, []),
});
const own = (given: TagValues): Instance => instance("i-0123456789abcdef0", given);

function watch(answers: readonly (readonly Instance[])[]) {
  const rest = [...answers];
  const clock = { nowMs: 0 };
  const api = {
    region: "us-west-2",
    now: () => clock.nowMs,
    call: async () => Promise.resolve({ Reservations: [{ Instances: rest.length > 1 ? rest.shift() : rest[0] }] }),
  } as unknown as CloudApi;
  const watching = {
    clusterId: "default",
    creationId,
    machineIds: ["i-0123456789abcdef0"],
    place: { region: "us-west-2", root: "/" },
    launchedMs: 0,
    withoutAddress: new Map<string, number>(),
  };
  const time = { now: () => clock.nowMs, sleep: async () => {} };
  return { look: async () => lookAtMachines(api, watching, time, never), clock };
}

test("a machine whose tags are there by half counts as not seen yet", async () => {
  const { role: _, ...half } = tags;
  const { look } = watch([[own(half)], [own(tags)]]);
  expect(await look()).toBeUndefined();
  expect((await look())?.nodes.map(({ id }) => id)).toEqual(["i-0123456789abcdef0"]);
});

test("an own machine is never another creation's, whatever its tags say for the moment", async () => {
  const { creationId: _, ...half } = tags;
  const later = instance("i-0123456789abcdef1", { ...tags, creationId: "fedcba9876543210" }, "2026-01-01T00:00:05Z");
  const { look } = watch([
    [own({ ...tags, creationId: "0000000000000000" })],
    [own(half), later],
    [later],
    [own(tags), later],
  ]);
  expect([await look(), await look(), await look()]).toEqual([undefined, undefined, undefined]);
  expect((await look())?.nodes.map(({ id }) => id)).toEqual(["i-0123456789abcdef0"]);
});

// Shows R128.
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
  clock.nowMs = 121_000;
  const error = await failureOf(look());
  expect([error.id, error.message]).toEqual([
    "machine-failed",
    "The cloud launched i-0123456789abcdef0, but after two minutes it still does not list it with its tags.",
  ]);
});

test("an older instance to which somebody has copied the tags takes no node's place", async () => {
  const { look } = watch([[instance("i-00000000000000bad", tags, "2020-01-01T00:00:00Z"), own(tags)]]);
  expect((await look())?.nodes.map(({ id }) => id)).toEqual(["i-0123456789abcdef0"]);
});

const [smaller, larger] = ["0000000000000000", "fedcba9876543210"] as const;
const [before, midnight, after] = ["2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"] as const;

interface Other {
  readonly id: string;
  readonly launched: string;
  readonly expiresAt?: string;
}

/** The own machine was launched at midnight; the API's clock stands at the beginning of 1970. */
const lookBeside = async ({ id, launched, ...more }: Other) =>
  watch([[own(tags), instance("i-0123456789abcdef1", { ...tags, ...more, creationId: id }, launched)]]).look();

test.each<[string, Other]>([
  ["was launched earlier", { id: larger, launched: before }],
  ["was launched at the same moment, and has a smaller id", { id: smaller, launched: midnight }],
  ["is just at its deadline", { id: larger, launched: before, expiresAt: "1970-01-01T00:00:00Z" }],
])("another creation of the same id that %s holds the id", async (_, other) => {
  expect((await failureOf(lookBeside(other))).id).toBe("cluster-exists");
});

test.each<[string, Other]>([
  ["was launched at the same moment, and has a larger id", { id: larger, launched: midnight }],
  ["was launched later, and has a smaller id", { id: smaller, launched: after }],
  ["is past its deadline", { id: larger, launched: before, expiresAt: "1969-12-31T23:59:59Z" }],
])("another creation of the same id that %s doesn't hold the id", async (_, other) => {
  expect((await lookBeside(other))?.creationId).toBe(creationId);
});

test("a creation is as old as its first machine", async () => {
  const other = { ...tags, creationId: larger };
  const late = instance("i-0123456789abcdef1", other, "2026-01-01T00:00:09Z");
  const early = instance("i-0123456789abcdef2", { ...other, role: "agent" }, "2025-12-31T23:59:59Z");
  expect((await failureOf(watch([[own(tags), late, early]]).look())).id).toBe("cluster-exists");
});
