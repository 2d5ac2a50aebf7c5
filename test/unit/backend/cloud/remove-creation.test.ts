/** How a creation's machines and group are removed while the cloud is late or refuses. */

import type { Filter, SecurityGroup } from "@aws-sdk/client-ec2";
import { expect, test } from "bun:test";
import {
  leftoversText,
  removeCreation,
  removeGroup,
} from "../../../../src/backend/cloud/removal.ts";
import { groupName, toTags } from "../../../../src/backend/cloud/tags.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import {
  type ScriptedInstance,
  outage,
  refusal,
  scriptedCloud,
} from "../../../support/scripted-cloud.ts";

const creation = { clusterId: "default", creationId: "0123456789abcdef" };
const idOf = (index: number): string => `i-0000000000000000${index}`;
const groupId = "sg-0123456789abcdef0";
const tags = { ...creation, role: "agent", variant: "oss", sshUser: "admin" };

const machine = (index: number, changes: Partial<ScriptedInstance> = {}): ScriptedInstance => ({
  id: idOf(index),
  tags: { ...tags, indexBase: String(index) },
  endingMs: 20_000,
  groupId,
  ...changes,
});
const group = (id = groupId, of = creation): SecurityGroup => ({
  GroupId: id,
  GroupName: groupName(of.clusterId),
  Tags: toTags("x", of, []),
});
const remains = (machineIds: readonly string[], known?: string) => ({
  ...creation,
  machineIds,
  groupId: known,
});
const nothing = { machineIds: [], groupIds: [] };

test("machines that nobody has terminated yet are found by their tags, and their group goes last", async () => {
  const cloud = scriptedCloud([machine(1), machine(2)], [group()]);
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([])),
  ).toEqual(nothing);
  expect([cloud.machinesLeft(), cloud.groupsLeft()]).toEqual([[], []]);
  expect(cloud.changes()).toEqual(["TerminateInstances", "DeleteSecurityGroup"]);
  expect(cloud.waits).toContain("waiting for 2 of 2 machines to terminate");
});

test("machines that were told to end, or have ended, are not told again", async () => {
  const cloud = scriptedCloud(
    [machine(1, { endsAtMs: 9000 }), machine(2, { state: "terminated" })],
    [group()],
  );
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([idOf(1)])),
  ).toEqual(nothing);
  expect(cloud.changes()).toEqual(["DeleteSecurityGroup"]);
});

test("a machine whose tags somebody changed is followed by its id until it has ended", async () => {
  const instances = [machine(1, { tags: {}, endsAtMs: 30_000 }), machine(2, { endsAtMs: 9000 })];
  const cloud = scriptedCloud(instances, [group()]);
  expect(
    await removeCreation(
      { ...cloud.runtime, signal: neverAborted },
      cloud.api,
      remains([idOf(1), idOf(2)]),
    ),
  ).toEqual(nothing);
  expect(cloud.changes()).toEqual(["DeleteSecurityGroup"]);
  // It has been seen, so nothing is waited for after its end.
  expect(cloud.elapsedMs()).toBeLessThan(36_000);
});

test("a machine that was told to end and is not shown yet is waited for", async () => {
  const cloud = scriptedCloud([machine(1, { visibleAtMs: 90_000, endsAtMs: 150_000 })], [group()]);
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([idOf(1)])),
  ).toEqual(nothing);
  expect(cloud.elapsedMs()).toBeLessThan(156_000);
  expect(cloud.changes()).toEqual(["DeleteSecurityGroup"]);
});

test("a machine that the API never shows counts as gone after two minutes", async () => {
  const cloud = scriptedCloud([], [group()]);
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([idOf(1)])),
  ).toEqual(nothing);
  expect(cloud.elapsedMs()).toBeGreaterThanOrEqual(120_000);
  expect(cloud.elapsedMs()).toBeLessThan(126_000);
  expect(cloud.groupsLeft()).toEqual([]);
});

test("machines of which none ends for six minutes are left behind, with their group, and named", async () => {
  const cloud = scriptedCloud([machine(1, { endingMs: Infinity }), machine(2)], [group()]);
  const left = await removeCreation(
    { ...cloud.runtime, signal: neverAborted },
    cloud.api,
    remains([]),
  );
  expect(left).toEqual({ machineIds: [idOf(1)], groupIds: [groupId] });
  // The other one has ended after 21 s.
  expect(cloud.elapsedMs()).toBeGreaterThan(380_000);
  expect(cloud.elapsedMs()).toBeLessThan(386_000);
  expect(cloud.waits.filter((text) => text !== "").at(-1)).toBe(
    "waiting for 1 of 2 machines to terminate",
  );
  // The group is in use, so one try is enough.
  expect(cloud.changes()).toEqual(["TerminateInstances", "DeleteSecurityGroup"]);
  expect(cloud.told.join("\n")).toContain(`1: Cannot delete security group ${groupId}: `);
});

test("the API is asked often at first, and every five seconds later", async () => {
  const cloud = scriptedCloud([machine(1, { endingMs: 60_000 })], []);
  await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([]));
  const looks = cloud.calls
    .filter(({ action }) => action === "DescribeInstances")
    .map(({ atMs }) => atMs);
  const pauses = looks.slice(1).map((atMs, index) => atMs - looks[index]!);
  expect(pauses.slice(0, 3)).toEqual([500, 650, 845]);
  expect(Math.max(...pauses)).toBe(5000);
  expect(pauses.at(-1)).toBe(5000);
});

test("other creations and their groups are left alone, whatever tags they share", async () => {
  const sibling = { ...creation, creationId: "fedcba9876543210" };
  const namesake = { ...creation, clusterId: "other" };
  const others = [
    machine(1, { tags: { ...tags, ...sibling }, groupId: "sg-00000001" }),
    machine(2, { tags: { ...tags, ...namesake }, groupId: "sg-00000002" }),
  ];
  const cloud = scriptedCloud(others, [
    group("sg-00000001", sibling),
    group("sg-00000002", namesake),
  ]);
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([])),
  ).toEqual(nothing);
  expect(cloud.changes()).toEqual([]);
});

test.each([undefined, groupId])(
  "a machine outside of the cluster's group that has the creation's tags is not terminated with it: %p",
  async (known) => {
    const foreign = machine(1, { groupId: "sg-00000001", groupName: "production" });
    const cloud = scriptedCloud([foreign, machine(2)], [group()]);
    expect(
      await removeCreation(
        { ...cloud.runtime, signal: neverAborted },
        cloud.api,
        remains([], known),
      ),
    ).toEqual(nothing);
    expect([cloud.machinesLeft(), cloud.groupsLeft()]).toEqual([[idOf(1)], []]);
  },
);

test.each([
  ["whose groups the API does not describe", undefined, { groupId: "" }],
  ["in the group with the creation's id but without a name", groupId, {}],
])("a machine %s is terminated with its creation", async (_, known, changes) => {
  const cloud = scriptedCloud([machine(1, { groupName: "", ...changes })], [group()]);
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([], known)),
  ).toEqual(nothing);
  expect(cloud.machinesLeft()).toEqual([]);
});

test("a machine that an older one with its tags hides is terminated too", async () => {
  const { id: _, ...same } = machine(1);
  const cloud = scriptedCloud([machine(1, { ageMs: 1000 }), { ...same, id: idOf(2) }], [group()]);
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([])),
  ).toEqual(nothing);
  expect([cloud.machinesLeft(), cloud.groupsLeft()]).toEqual([[], []]);
});

test("machines that this computer launched are terminated whatever their tags and groups say", async () => {
  const stripped = machine(1, { tags: {}, groupName: "production" });
  const cloud = scriptedCloud([stripped, machine(2)], [group()]);
  const known = { ...remains([]), ownIds: [idOf(1), idOf(2), idOf(3)] };
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, known),
  ).toEqual(nothing);
  expect([cloud.machinesLeft(), cloud.groupsLeft()]).toEqual([[], []]);
  expect(cloud.elapsedMs()).toBeLessThan(30_000);
});

test("of more machines without tags than one request may name, each is terminated", async () => {
  const machines = Array.from({ length: 250 }, (_, index) => ({
    ...machine(1, { tags: {}, groupName: "production" }),
    id: `i-${String(index).padStart(17, "0")}`,
  }));
  const cloud = scriptedCloud(machines, [group()]);
  const known = { ...remains([]), ownIds: machines.map(({ id }) => id) };
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, known),
  ).toEqual(nothing);
  expect([cloud.machinesLeft(), cloud.groupsLeft()]).toEqual([[], []]);
  const named = cloud.calls.flatMap(
    ({ input }) => (input["Filters"] as readonly Filter[] | undefined) ?? [],
  );
  expect(Math.max(...named.map(({ Values = [] }) => Values.length))).toBe(200);
});

test("while only some machines may be terminated, the others are left, and so is their group", async () => {
  const cloud = scriptedCloud([machine(1), machine(2)], [group()]);
  const known = { ...remains([]), mayEnd: ({ id }: { readonly id: string }) => id === idOf(1) };
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, known),
  ).toEqual({
    ...nothing,
    groupIds: [groupId],
  });
  expect(cloud.machinesLeft()).toEqual([idOf(2)]);
});

test("a group whose tags can't be seen is removed by its id, and every copy of it by its tags", async () => {
  const cloud = scriptedCloud([], [{ GroupId: groupId }, group("sg-00000001")]);
  expect(
    await removeCreation(
      { ...cloud.runtime, signal: neverAborted },
      cloud.api,
      remains([], groupId),
    ),
  ).toEqual(nothing);
  expect(cloud.groupsLeft()).toEqual([]);
});

test("a machine that appears while its group is in use is terminated too", async () => {
  const cloud = scriptedCloud([machine(1, { visibleAtMs: 10_000 })], [group()]);
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([])),
  ).toEqual(nothing);
  expect([cloud.machinesLeft(), cloud.groupsLeft()]).toEqual([[], []]);
});

test("a group that stays in use is retried every two seconds for two minutes, then left behind", async () => {
  const cloud = scriptedCloud([machine(1, { visibleAtMs: Infinity })], [group()]);
  expect(
    await removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([])),
  ).toEqual({
    ...nothing,
    groupIds: [groupId],
  });
  const tries = cloud.calls
    .filter(({ action }) => action === "DeleteSecurityGroup")
    .map(({ atMs }) => atMs);
  expect([tries.length, tries[1], tries.at(-1)]).toEqual([61, 2000, 120_000]);
});

test("an outage ends the removal with an error that can be retried", async () => {
  const isDown = ({ action }: { readonly action: string }) =>
    action === "DeleteSecurityGroup" ? outage() : undefined;
  const cloud = scriptedCloud([], [group()], isDown);
  const error = await failureOf(
    removeCreation({ ...cloud.runtime, signal: neverAborted }, cloud.api, remains([])),
  );
  expect(error).toMatchObject({ id: "cloud-failed", transient: true });
});

test.each([
  ["InvalidGroup.NotFound", true],
  ["InvalidGroupId.NotFound", true],
  ["InvalidGroup.InUse", false],
  ["InvalidVpcID.NotFound", false],
  ["UnauthorizedOperation", false],
])("a refusal to delete a group with %s means that it is gone: %p", async (code, isGone) => {
  const cloud = scriptedCloud([], [], () => refusal(code));
  const removal = removeGroup(
    cloud.api,
    groupId,
    { clock: cloud.runtime.clock, limitMs: 60_000 },
    neverAborted,
  );
  if (isGone) await removal;
  else expect((await failureOf(removal)).facts).toMatchObject({ code });
  expect(cloud.calls).toHaveLength(1);
});

const end = new Date("2026-01-01T02:00:00Z");
test.each([
  [[], [], end, undefined],
  [
    [idOf(1), idOf(2)],
    [],
    end,
    `machines ${idOf(1)}, ${idOf(2)}. Machines terminate automatically at 02:00 UTC (in 1 min); `,
  ],
  [
    [],
    [groupId],
    undefined,
    `security group ${groupId}. Machines terminate automatically at their deadline; `,
  ],
  [
    [idOf(1)],
    [groupId],
    end,
    `machines ${idOf(1)}; security group ${groupId}. Machines terminate `,
  ],
])(
  "what is left of machines %p and groups %p is named with its end",
  (machineIds, groupIds, expiresAt, text) => {
    const said = leftoversText({ machineIds, groupIds }, expiresAt, end.getTime() - 60_000);
    if (text === undefined) expect(said).toBeUndefined();
    else expect(said).toStartWith(`Left behind: ${text}`);
  },
);
