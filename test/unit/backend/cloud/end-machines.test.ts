/** How the machines of launches are terminated, also when nobody knows which they are. */

import { expect, test } from "bun:test";
import type { SavedLaunch } from "../../../../src/backend/cloud/launch/saved-requests.ts";
import { endLaunches, terminate } from "../../../../src/backend/cloud/removal.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import {
  type ScriptedInstance,
  outage,
  refusal,
  scriptedCloud,
} from "../../../support/scripted-cloud.ts";

const idOf = (index: number): string => `i-${String(index).padStart(17, "0")}`;
const machine = (index: number, changes: Partial<ScriptedInstance> = {}): ScriptedInstance => ({
  id: idOf(index),
  tags: {},
  ...changes,
});
const launch = (
  token: string,
  machineIds?: readonly string[],
  MinCount: number | undefined = 2,
): SavedLaunch => ({
  name: `agent-${token}`,
  request: { ClientToken: token, MinCount, MaxCount: MinCount },
  machineIds,
});
/** EC2's answer doesn't name the machines. */
const incomplete = () =>
  new ClusterError("cloud-failed", "It lacks them.", {
    transient: true,
    facts: { code: "IncompleteAnswer" },
  });
const failing = (action: string, error: ClusterError) => (call: { readonly action: string }) =>
  call.action === action ? error : undefined;

test("1001 machines are terminated with three requests, each once", async () => {
  const machines = Array.from({ length: 1001 }, (_, index) => machine(index));
  const cloud = scriptedCloud(machines, []);
  const ids = machines.map(({ id }) => id);
  await terminate(cloud.api, ids, cloud.runtime.clock, neverAborted);
  const named = cloud.calls.map(({ input }) => input["InstanceIds"] as readonly string[]);
  expect(named.map(({ length }) => length)).toEqual([500, 500, 1]);
  expect(named.flat()).toEqual(ids);
  await terminate(cloud.api, [], cloud.runtime.clock, neverAborted);
  expect(cloud.calls).toHaveLength(3);
});

test("a machine that the API does not know yet is terminated once it does", async () => {
  const cloud = scriptedCloud([machine(1, { visibleAtMs: 110_000 })], []);
  await terminate(cloud.api, [idOf(1)], cloud.runtime.clock, neverAborted);
  expect(cloud.machinesLeft()).toEqual([]);
  expect(cloud.elapsedMs()).toBe(110_000);
});

test("a machine that the API does not know after two minutes is an error, as is any other refusal", async () => {
  const cloud = scriptedCloud([], []);
  const unknown = await failureOf(
    terminate(cloud.api, [idOf(1)], cloud.runtime.clock, neverAborted),
  );
  expect([unknown.facts, cloud.elapsedMs()]).toMatchObject([
    { code: "InvalidInstanceID.NotFound" },
    120_000,
  ]);
  const denied = scriptedCloud([machine(1)], [], () => refusal("UnauthorizedOperation"));
  await failureOf(terminate(denied.api, [idOf(1)], denied.runtime.clock, neverAborted));
  expect(denied.calls).toHaveLength(1);
});

test("known machines are terminated by their ids; a launch without an answer is repeated for its machines", async () => {
  const cloud = scriptedCloud(
    [machine(1), machine(2, { token: "b" }), machine(3, { token: "b" }), machine(4)],
    [],
  );
  const launches = [launch("a", [idOf(1)]), launch("b"), launch("c", [])];
  const ended = await endLaunches(cloud.api, launches, cloud.runtime.clock, neverAborted);
  expect(ended).toEqual([idOf(1), idOf(2), idOf(3)]);
  expect(cloud.machinesLeft()).toEqual([idOf(4)]);
  expect(cloud.changes().toSorted()).toEqual([
    "RunInstances",
    "TerminateInstances",
    "TerminateInstances",
  ]);
});

test("without launches, nothing is requested", async () => {
  const cloud = scriptedCloud([], []);
  expect(
    await endLaunches(cloud.api, [launch("a", [])], cloud.runtime.clock, neverAborted),
  ).toEqual([]);
  expect(cloud.calls).toEqual([]);
});

test.each([
  ["refused", () => refusal("InvalidGroup.NotFound"), undefined],
  ["refused because of the credentials", () => refusal("RequestExpired"), "credentials-refused"],
])(
  "if a repeated launch is %s, known machines are terminated anyway",
  async (_, error, outcome) => {
    const cloud = scriptedCloud(
      [machine(1), machine(2, { token: "b" })],
      [],
      failing("RunInstances", error()),
    );
    const ending = endLaunches(
      cloud.api,
      [launch("b"), launch("a", [idOf(1)])],
      cloud.runtime.clock,
      neverAborted,
    );
    if (outcome !== undefined) expect(await failureOf(ending)).toHaveProperty("id", outcome);
    else expect(await ending).toEqual([idOf(1)]);
    expect(cloud.machinesLeft()).toEqual([idOf(2)]);
  },
);

// Shows R102.
test.each([
  ["lost", outage],
  ["incomplete", incomplete],
])(
  "if every answer is %s, the machines of the token are terminated, and as many as were asked for are enough",
  async (_, error) => {
    const machines = [
      machine(1, { token: "b" }),
      machine(2, { token: "b" }),
      machine(3, { token: "other" }),
    ];
    const cloud = scriptedCloud(machines, [], failing("RunInstances", error()));
    expect(await endLaunches(cloud.api, [launch("b")], cloud.runtime.clock, neverAborted)).toEqual([
      idOf(1),
      idOf(2),
    ]);
    expect([cloud.machinesLeft(), cloud.elapsedMs()]).toEqual([[idOf(3)], 0]);
    expect(cloud.changes()).toEqual(["RunInstances", "TerminateInstances"]);
  },
);

test("a launch of one machine needs no count", async () => {
  const cloud = scriptedCloud([machine(1, { token: "b" })], [], failing("RunInstances", outage()));
  const request = { ClientToken: "b" } as SavedLaunch["request"];
  await endLaunches(cloud.api, [{ ...launch("b"), request }], cloud.runtime.clock, neverAborted);
  expect([cloud.machinesLeft(), cloud.elapsedMs()]).toEqual([[], 0]);
});

// Shows R102.
test("while fewer machines than asked for are described, each is terminated at once, and others for 20 s", async () => {
  const machines = [machine(1, { token: "b" }), machine(2, { token: "b", visibleAtMs: 15_000 })];
  const late = scriptedCloud(machines, [], failing("RunInstances", outage()));
  expect(await endLaunches(late.api, [launch("b")], late.runtime.clock, neverAborted)).toEqual([
    idOf(1),
    idOf(2),
  ]);
  const ends = late.calls.filter(({ action }) => action === "TerminateInstances");
  expect(ends.map(({ input, atMs }) => [input["InstanceIds"], atMs])).toEqual([
    [[idOf(1)], 0],
    [[idOf(2)], 16_000],
  ]);
  const lost = scriptedCloud(machines.slice(0, 1), [], failing("RunInstances", outage()));
  expect(await endLaunches(lost.api, [launch("b")], lost.runtime.clock, neverAborted)).toEqual([
    idOf(1),
  ]);
  expect(lost.elapsedMs()).toBe(20_000);
});

test("if neither an answer comes nor machines can be described, the failure can be retried", async () => {
  const cloud = scriptedCloud([machine(1, { token: "b" })], [], ({ action }) =>
    action === "TerminateInstances" ? undefined : outage(),
  );
  const error = await failureOf(
    endLaunches(cloud.api, [launch("b")], cloud.runtime.clock, neverAborted),
  );
  expect(error).toMatchObject({ id: "cloud-failed", transient: true });
});

test("an API that ignores the filter for the token has no other machine terminated", async () => {
  const cloud = scriptedCloud(
    [machine(1, { token: "b" }), machine(2, { token: "b" }), machine(3)],
    [],
    failing("RunInstances", outage()),
  );
  const call = async (action: string, input: object, signal: AbortSignal): Promise<unknown> => {
    const everything = { Filters: [{ Name: "instance-id", Values: [1, 2, 3].map(idOf) }] };
    return cloud.api.call(
      action as "DescribeInstances",
      action === "DescribeInstances" ? everything : input,
      signal,
    );
  };
  await endLaunches(
    { ...cloud.api, call: call as typeof cloud.api.call },
    [launch("b")],
    cloud.runtime.clock,
    neverAborted,
  );
  expect(cloud.machinesLeft()).toEqual([idOf(3)]);
});
