/** What a create removes of expired clusters before it begins. */

import { expect, test } from "bun:test";
import { assertIdIsFree } from "../../../../src/backend/cloud/launch/network.ts";
import { removeExpired, takeInventory } from "../../../../src/backend/cloud/remove-expired.ts";
import { groupName, toTags } from "../../../../src/backend/cloud/tags.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { type ScriptedInstance, refusal, scriptedCloud } from "../../../support/scripted-cloud.ts";

const idOf = (index: number): string => `i-0000000000000000${index}`;
const expired = "2025-12-31T23:59:59Z";
const lasting = "2026-01-01T01:00:00Z";

function cluster(
  index: number,
  clusterId: string,
  expiresAt: string,
  changes: Partial<ScriptedInstance> = {},
) {
  const tags = { clusterId, creationId: `0123456789abcde${index}`, expiresAt };
  const groupId = `sg-0000000${index}`;
  const machine = { role: "master", variant: "oss", sshUser: "admin", ...tags };
  return {
    machine: {
      id: idOf(index),
      tags: machine,
      groupId,
      endingMs: 9000,
      ageMs: 2 * 3_600_000 + 1,
      ...changes,
    },
    group: { GroupId: groupId, GroupName: groupName(clusterId), Tags: toTags("x", tags, []) },
  };
}
type Cluster = ReturnType<typeof cluster>;

function openCloud(
  withMachines: readonly Cluster[],
  groupsOnly: readonly Cluster[],
  denied?: string,
) {
  const groups = [...withMachines, ...groupsOnly].map(({ group }) => group);
  const machines = withMachines.map(({ machine }) => machine);
  return scriptedCloud(machines, groups, ({ action }) =>
    action === denied ? refusal("UnauthorizedOperation") : undefined,
  );
}

async function clean(cloud: ReturnType<typeof openCloud>, signal = neverAborted): Promise<void> {
  const inventory = await takeInventory(cloud.api, neverAborted);
  await removeExpired({ ...cloud.runtime, signal }, cloud.api, inventory, "wanted");
}

test("removes machines and unused groups of expired clusters, and says so", async () => {
  const cloud = openCloud(
    [cluster(1, "old", expired), cluster(2, "new", lasting)],
    [cluster(3, "older", expired)],
  );
  await clean(cloud);
  expect(cloud.machinesLeft()).toEqual([idOf(1), idOf(2)]);
  expect(cloud.calls.at(-2)?.input).toEqual({ InstanceIds: [idOf(1)] });
  // The next create removes the group of the machine that still ends.
  expect(cloud.groupsLeft()).toEqual(["sg-00000001", "sg-00000002"]);
  expect(cloud.told).toEqual([
    `1: Removed the remains of an expired cluster: sg-00000003`,
    `1: Removed the remains of an expired cluster: ${idOf(1)}`,
  ]);
  expect(cloud.elapsedMs()).toBe(0);
});

test("waits for the expired cluster whose id is wanted, until its group and so the name is free", async () => {
  const cloud = openCloud([cluster(1, "wanted", expired), cluster(2, "old", expired)], []);
  await clean(cloud);
  expect(cloud.groupsLeft()).toEqual(["sg-00000002"]);
  expect(cloud.told).toContain(
    "1: Removed the remains of an expired cluster: creation 0123456789abcde1",
  );
  expect(cloud.elapsedMs()).toBeGreaterThan(9000);
});

test.each([
  ["lives", lasting, {}],
  ["expires this very moment", "2026-01-01T00:00:00Z", {}],
  ["has ended", expired, { state: "terminated" }],
  ["was launched less than two hours ago", expired, { ageMs: 2 * 3_600_000 - 1 }],
  ["has a machine outside of its group", expired, { groupName: "default" }],
] as const)(
  "does not wait for a cluster with the wanted id that %s",
  async (_, expiresAt, changes) => {
    const { machine, group } = cluster(1, "wanted", expiresAt, changes);
    const cloud = scriptedCloud([machine], [group]);
    await clean(cloud);
    expect(cloud.told.join()).not.toContain("creation");
    expect(cloud.changes()).not.toContain("TerminateInstances");
  },
);

// Shows R133.
test("an expired machine with the tags of a running node does not let its cluster be removed", async () => {
  const { machine, group } = cluster(1, "wanted", lasting, { ageMs: 0 });
  const impostor = {
    ...machine,
    id: idOf(2),
    tags: { ...machine.tags, expiresAt: expired },
    ageMs: 3 * 3_600_000,
  };
  const cloud = scriptedCloud([impostor, { ...machine, endingMs: 0 }], [group]);
  const inventory = await takeInventory(cloud.api, neverAborted);
  const wanted = { clusterId: "wanted", region: "us-west-2", nowMs: cloud.api.now(), leaving: [] };
  expect(() => assertIdIsFree(inventory, wanted)).toThrow("exists");
  await clean(cloud);
  expect([cloud.machinesLeft(), cloud.groupsLeft()]).toEqual([[idOf(2), idOf(1)], [group.GroupId]]);
  expect(cloud.told.join()).not.toContain("creation");
});

test("without remains it changes and says nothing", async () => {
  const cloud = openCloud([cluster(1, "new", lasting)], []);
  await clean(cloud);
  expect([cloud.changes(), cloud.told]).toEqual([[], []]);
});

test("what it may not remove is left to the next create, and named", async () => {
  const cloud = openCloud(
    [cluster(1, "old", expired)],
    [cluster(3, "older", expired)],
    "TerminateInstances",
  );
  await clean(cloud);
  expect(cloud.groupsLeft()).toEqual(["sg-00000001"]);
  expect(cloud.told.join("\n")).toContain(
    `1: Cannot remove the remains of an expired cluster, ${idOf(1)}: The account may not`,
  );
});

test("a group that cannot be removed is tried once", async () => {
  const used = cluster(3, "older", expired, { visibleAtMs: 1 });
  const cloud = openCloud([used], []);
  await clean(cloud);
  expect(cloud.changes()).toEqual(["DeleteSecurityGroup"]);
  expect(cloud.told.join("\n")).toContain(
    "Cannot remove the remains of an expired cluster, sg-00000003: ",
  );
});

test.each([
  ["an interrupt", new Error("interrupted")],
  ["a time limit", new ClusterError("deadline-passed", "It took too long.")],
])("%s ends it at once", async (_, reason) => {
  const cloud = openCloud([cluster(1, "old", expired)], []);
  const error: unknown = await failureOf(clean(cloud, AbortSignal.abort(reason)));
  expect(error).toBe(reason);
  expect([cloud.machinesLeft(), cloud.told]).toEqual([[idOf(1)], []]);
});

test("a bug is not taken for a refusal", async () => {
  const { machine, group } = cluster(1, "old", expired);
  const bug = new TypeError("x is not a function");
  const cloud = scriptedCloud([machine], [group], ({ action }) =>
    action === "TerminateInstances" ? bug : undefined,
  );
  const error: unknown = await failureOf(clean(cloud));
  expect(error).toBe(bug);
});

test("machines and groups that only look like a cluster's are left alone, and named", async () => {
  const { machine, group } = cluster(1, "old", expired);
  const forged = { ...machine, tags: { ...machine.tags, role: "president" } };
  const cloud = scriptedCloud([forged], [{ ...group, GroupName: "mine" }]);
  await clean(cloud);
  expect(cloud.changes()).toEqual([]);
  const ignored = "1: Ignored, because this program did not create it in this form:";
  expect(cloud.told).toEqual([
    `${ignored} instance ${idOf(1)}: its tag cluster-e2e:role is malformed.`,
    `${ignored} security group sg-00000001: its name is not the name of its cluster's group.`,
  ]);
});
