import { expect, test } from "bun:test";
import { ClusterError } from "../../../../src/errors.ts";
import type { LoggedRequest } from "../../../local-cloud/endpoint/request-log.ts";
import type { LocalCloud } from "../../../local-cloud/local-cloud.ts";
import {
  leftIn,
  nothing,
  openFixture,
  region,
  type RequestChanges,
} from "../../../support/cloud-fixture.ts";
import { until } from "../../../support/until.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** The reason of an abort by Ctrl-C, which isn't a failure of the creation. */
const interruption = new Error("interrupted");
const twoRoles = { counts: { master: 1, agent: 2, public_agent: 0 } } as const;

/** Creates in a slow cloud, interrupts as soon as `isTime` returns true, and returns the result. */
async function interrupt(
  isTime: (requests: readonly LoggedRequest[], told: readonly string[]) => boolean,
  changes: RequestChanges,
) {
  await using fixture = await openFixture({});
  const { cloud, told } = fixture;
  cloud.behaviour.change({ apiDelayMs: 40, pendingMs: 300, bootDelayMs: 400 });
  const backend = await fixture.open(region);
  const request = fixture.request("default", { ...twoRoles, ...changes });
  const controller = new AbortController();
  const provisioning = fixture
    .create(backend, request, controller.signal)
    .catch((error: unknown) => error);
  while (!isTime(cloud.requests.entries, told)) await Bun.sleep(1);
  controller.abort(interruption);
  const outcome = await provisioning;
  await allAnswered(cloud);
  return {
    outcome,
    left: leftIn(cloud),
    machines: cloud.instances().length,
    entries: cloud.requests.entries,
    told,
    request,
  };
}

/** A request that was in flight when the connection closed is still executed, a little later. */
const allAnswered = async (cloud: LocalCloud): Promise<void> =>
  until("the last request is answered", () =>
    cloud.requests.entries.every(({ outcome }) => outcome !== "unanswered"),
  );

const answered = (action: string) => (requests: readonly LoggedRequest[]) =>
  requests.some((entry) => entry.action === action);

test.each([
  ["while looking around", answered("DescribeSubnets")],
  ["when the group is made", answered("CreateSecurityGroup")],
  ["when the first machines are launched", answered("RunInstances")],
  [
    "while machines start",
    (_: readonly LoggedRequest[], told: readonly string[]) =>
      told.some((line) => line.includes("machines to start")),
  ],
  [
    "while they become reachable",
    (_: readonly LoggedRequest[], told: readonly string[]) =>
      told.some((line) => line.includes("accept SSH logins")),
  ],
])("a creation that is interrupted %s leaves nothing", async (_, isTime) => {
  const { outcome, left } = await interrupt(isTime, {});
  expect(outcome).toBe(interruption);
  expect(left).toEqual(nothing);
});

test.each(["CreateSecurityGroup", "RunInstances"])(
  "a creation that is interrupted during %s leaves nothing",
  async (action) => {
    await using fixture = await openFixture({});
    const { cloud } = fixture;
    // The request arrives, but is executed only after the interruption.
    cloud.faults.add({ action, when: "before", times: 1, delayMs: 300 });
    const backend = await fixture.open(region);
    const request = fixture.request("default", twoRoles);
    const controller = new AbortController();
    const provisioning = fixture
      .create(backend, request, controller.signal)
      .catch((error: unknown) => error);
    await until("the request has come in", () => answered(action)(cloud.requests.entries));
    controller.abort(interruption);
    expect(await provisioning).toBe(interruption);
    await allAnswered(cloud);
    expect(leftIn(cloud)).toEqual(nothing);
  },
);

test("a creation that is interrupted in its last step terminates the machines before it saves logs", async () => {
  const controller = { started: false };
  const { outcome, left, entries, request } = await interrupt(() => controller.started, {
    complete: async (_, signal) => {
      controller.started = true;
      await new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      });
    },
  });
  expect(outcome).toBe(interruption);
  expect(left).toEqual(nothing);
  expect(request.failures).toHaveLength(1);
  const actions = entries.map((entry) => entry.action);
  const terminatedAt = actions.indexOf("TerminateInstances");
  expect(
    actions.slice(0, terminatedAt).filter((action) => action === "DescribeInstances").length,
  ).toBeGreaterThan(1);
  expect(actions.slice(terminatedAt + 1)).toContain("DescribeInstances");
});

test("if another step fails, logs are saved before the machines are terminated", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const failure = new ClusterError("install-failed", "The installer failed.");
  const backend = await fixture.open(region);
  const seen = { states: [] as string[] };
  const request = fixture.request("default", {
    ...twoRoles,
    complete: async () => Promise.reject(failure),
    onLogs: async (cluster) => {
      seen.states = cluster.nodes.map((node) => node.state);
    },
  });
  const outcome = await fixture
    .create(backend, request, neverAborted)
    .catch((error: unknown) => error);
  expect(outcome).toBe(failure);
  expect(seen.states).toEqual(["running", "running", "running"]);
  expect(leftIn(cloud)).toEqual(nothing);
});

test("with keepOnFailure machines stay, and the time of their end is shown", async () => {
  await using fixture = await openFixture({});
  const { cloud, told } = fixture;
  const backend = await fixture.open(region);
  const request = fixture.request("default", {
    counts: { master: 1, agent: 0, public_agent: 0 },
    keepOnFailure: true,
    complete: () => Promise.reject(new Error("no luck")),
  });
  await fixture.create(backend, request, neverAborted).catch(() => {});
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
  expect(
    told.some((line) =>
      /^note: Kept as requested: machines i-.* They terminate automatically at /.test(line),
    ),
  ).toBe(true);
  expect(request.remains()).toMatch(
    /^Machines i-.* may be left in region us-west-2: they terminate automatically at .* UTC .*; /,
  );
  // The next create doesn't mistake them for remains.
  const next = fixture.request("default", twoRoles);
  const refusal = await fixture
    .create(backend, next, neverAborted)
    .catch((error: unknown) => error);
  expect(refusal).toMatchObject({ id: "cluster-exists" });
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
});

test("failing to save logs does not prevent the removal", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const request = fixture.request("default", {
    ...twoRoles,
    complete: () => Promise.reject(new Error("no luck")),
    onLogs: () => Promise.reject(new Error("no logs")),
  });
  const outcome = await fixture
    .create(backend, request, neverAborted)
    .catch((error: unknown) => error);
  expect(outcome).toMatchObject({ message: "no luck" });
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});
