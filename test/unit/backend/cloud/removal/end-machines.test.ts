/** How the machines of launches are terminated, also when nobody knows which they are. */
import { expect, test } from "bun:test";
import { endLaunches, terminate } from "../../../../../src/backend/cloud/removal/end-machines.ts";
import type { SavedLaunch } from "../../../../../src/backend/cloud/launch/saved-requests.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { outage, refusal, scriptedCloud, type ScriptedInstance } from "../../../../support/scripted-cloud.ts";

const never = new AbortController().signal;
const idOf = (index: number): string => `i-${String(index).padStart(17, "0")}`;
const machine = (index: number, changes: Partial<ScriptedInstance> = {}): ScriptedInstance => ({
  id: idOf(index),
  tags: {},
  ...changes,
});
const launch = (token: string, machineIds?: readonly string[], MinCount: number | undefined = 2): SavedLaunch => ({
  name: `agent-${token}`,
  request: { ClientToken: token, MinCount, MaxCount: MinCount },
  machineIds,
});
/** EC2's answer doesn't name the machines. */
const incomplete = () =>
  new ClusterError("cloud-failed", "It lacks them.", { transient: true, facts: { code: "IncompleteAnswer" } });
const failing = (action: string, error: ClusterError) => (call: { readonly action: string }) =>
  call.action === action ? error : undefined;

test("1001 machines are terminated with three requests, each once", async () => {
  const machines = Array.from({ length: 1001 }, (_, index) => machine(index));
  const cloud = scriptedCloud(machines, []);
  const ids = machines.map(({ id }) => id);
  await terminate(cloud.api, ids, cloud.runtime.clock, never);
  const named = cloud.calls.map(({ input }) => input["InstanceIds"] as readonly string[]);
  expect(named.map(({ length }) => length)).toEqual([500, 500, 1]);
  expect(named.flat()).toEqual(ids);
  await terminate(cloud.api, [], cloud.runtime.clock, never);
  expect(cloud.calls).toHaveLength(3);
});

test("a machine that the API does not know yet is terminated once it does", async () => {
  const cloud = scriptedCloud([machine(1, { visibleAtMs: 110_000 })], []);
  await terminate(cloud.api, [idOf(1)], cloud.runtime.clock, never);
  expect(cloud.machinesLeft()).toEqual([]);
  expect(cloud.elapsedMs()).toBe(110_000);
});

test("a machine that the API does not know after two minutes is an error, as is any other refusal", async () => {
  const cloud = scriptedCloud([], []);
  const unknown = await failureOf(terminate(cloud.api, [idOf(1)], cloud.runtime.clock, never));
  expect([unknown.facts, cloud.elapsedMs()]).toMatchObject([{ code: "InvalidInstanceID.NotFound" }, 120_000]);
  const denied = scriptedCloud([machine(1)], [], () => refusal("UnauthorizedOperation"));
  await failureOf(terminate(denied.api, [idOf(1)], denied.runtime.clock, never));
  expect(denied.calls).toHaveLength(1);
});

test("known machines are terminated by their ids; a launch without an answer is repeated for its machines", async () => {
  const cloud = scriptedCloud([machine(1), machine(2, { token: "b" }), machine(3, { token: "b" }), machine(4)], []);
  const launches = [launch("a", [idOf(1)]), launch("b"), launch("c", [])];
  const ended = await endLaunches(cloud.api, launches, cloud.runtime.clock, never);
  expect(ended).toEqual([idOf(1), idOf(2), idOf(3)]);
  expect(cloud.machinesLeft()).toEqual([idOf(4)]);
  expect(cloud.changes().toSorted()).toEqual(["RunInstances", "TerminateInstances", "TerminateInstances"]);
});

test("without launches, nothing is requested", async () => {
  const cloud = scriptedCloud([], []);
  expect(await endLaunches(cloud.api, [launch("a", [])], cloud.runtime.clock, never)).toEqual([]);
  expect(cloud.calls).toEqual([]);
});

test.each([
  ["refused", () => refusal("InvalidGroup.NotFound"), undefined],
  ["refused because of the credentials", () => refusal("RequestExpired"), "credentials-refused"],
  ["not answered", outage, "cloud-failed"],
])("if a repeated launch is %s, known machines are terminated anyway", async (_, error, outcome) => {
  const cloud = scriptedCloud([machine(1), machine(2, { token: "b" })], [], failing("RunInstances", error()));
  const ending = endLaunches(cloud.api, [launch("b"), launch("a", [idOf(1)])], cloud.runtime.clock, never);
  if (outcome !== undefined) expect(await failureOf(ending)).toHaveProperty("id", outcome);
  else expect(await ending).toEqual([idOf(1)]);
  expect(cloud.machinesLeft()).toEqual([idOf(2)]);
});

test.each([
  ["all of them", 2, true],
  ["the only one", undefined, true],
  ["fewer", 3, false],
])("if the answer does not name the machines, the token must find %s", async (_, wanted, isEnough) => {
  const found = [machine(1, { token: "b" }), machine(2, { token: "b" })].slice(wanted === undefined ? 1 : 0);
  const cloud = scriptedCloud([...found, machine(3, { token: "other" })], [], failing("RunInstances", incomplete()));
  const request = { ClientToken: "b", ...(wanted !== undefined && { MinCount: wanted }) };
  const unnamed = { ...launch("b"), request } as SavedLaunch;
  const ending = endLaunches(cloud.api, [unnamed], cloud.runtime.clock, never);
  if (isEnough) expect(await ending).toEqual(found.map(({ id }) => id));
  else expect((await failureOf(ending)).message).toBe("It lacks them.");
  expect(cloud.machinesLeft()).toEqual([...(isEnough ? [] : found.map(({ id }) => id)), idOf(3)]);
});
