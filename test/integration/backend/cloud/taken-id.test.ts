import { expect, test } from "bun:test";
import { ClusterError } from "../../../../src/errors.ts";
import type { LocalCloud } from "../../../local-cloud/local-cloud.ts";
import {
  leftIn,
  nothing,
  openFixture,
  region,
  subnetOfTheOtherNetwork,
} from "../../../support/cloud-fixture.ts";
import { until } from "../../../support/until.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const oneNode = { counts: { master: 1, agent: 0, public_agent: 0 } } as const;

const hasTerminated = async (cloud: LocalCloud, id: string): Promise<void> =>
  until(`${id} has terminated`, () =>
    cloud.instances().some(({ instanceId, state }) => instanceId === id && state === "terminated"),
  );

test("rejects an id that is taken, says when that cluster ends, and doesn't change it", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const first = fixture.request("default", oneNode);
  const second = fixture.request("default", oneNode);
  const present = await fixture.create(backend, first, neverAborted);
  const refusal = await fixture
    .create(backend, second, neverAborted)
    .catch((error: unknown) => error);
  const expiresAt = present.expiresAt?.toISOString();
  const facts = { cluster: "default", region: "us-west-2", expiresAt };
  expect(refusal).toMatchObject({ id: "cluster-exists", exitCode: 1, facts });
  expect((refusal as ClusterError).message).toMatch(
    /It ends (\S+ )?\d\d:\d\d UTC \(in (1 h 59 min|2 h)\)/,
  );
  expect(await backend.plan(second, neverAborted).catch((error: unknown) => error)).toMatchObject({
    id: "cluster-exists",
  });
  expect(await backend.find("default", neverAborted)).toEqual(present);
  expect(leftIn(fixture.cloud)).toEqual({ machines: 1, groups: 1 });
});

test("of two concurrent creates one wins, and the other leaves nothing", async () => {
  await using fixture = await openFixture({});
  const backends = [await fixture.open(region), await fixture.open(region)];
  const first = fixture.request("default", oneNode);
  const second = fixture.request("default", oneNode);
  const outcomes = await Promise.allSettled(
    [first, second].map((request, index) =>
      fixture.create(backends[index]!, request, neverAborted),
    ),
  );
  const won = outcomes.flatMap((outcome) =>
    outcome.status === "fulfilled" ? [outcome.value] : [],
  );
  const lost = outcomes.flatMap((outcome) =>
    outcome.status === "rejected" ? [outcome.reason as unknown] : [],
  );
  expect(won).toHaveLength(1);
  expect(lost).toEqual([expect.any(ClusterError)]);
  expect(lost[0]).toMatchObject({ id: "cluster-exists" });
  expect(await backends[0]!.find("default", neverAborted)).toEqual(won[0]);
  expect(leftIn(fixture.cloud)).toEqual({ machines: 1, groups: 1 });
});

// Shows R98.
test("of two creates in different networks, where the group's name is no lock, the later one gives up", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  // Neither sees the other's machines before it has launched its own.
  cloud.behaviour.change({ tagsVisibleAfterMs: 400, pendingMs: 1500 });
  const backend = await fixture.open(region);
  const subnetId = subnetOfTheOtherNetwork();
  const first = fixture.request("default", oneNode);
  const second = fixture.request("default", {
    ...oneNode,
    options: { ...first.options, subnetId },
  });
  const elder = fixture.create(backend, first, neverAborted);
  await until("the first has launched its machine", () => cloud.instances().length === 1);
  // Launch times are in whole seconds.
  cloud.clock.skew(2000);
  const later = fixture.create(backend, second, neverAborted).catch((error: unknown) => error);
  expect(await later).toMatchObject({ id: "cluster-exists" });
  const made = await elder;
  expect(await backend.find("default", neverAborted)).toEqual(made);
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
});

// Shows R108.
test("removes the remains of ended clusters, and nothing else", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  const ended = fixture.request("ended", oneNode);
  const stuck = fixture.request("stuck", oneNode);
  const present = fixture.request("present", oneNode);
  const first = await fixture.create(backend, ended, neverAborted);
  const late = await fixture.create(backend, stuck, neverAborted);
  // Its machine has powered itself off. For some reason the other's has not.
  await cloud.kill(first.nodes[0]!.id);
  await hasTerminated(cloud, first.nodes[0]!.id);
  cloud.clock.skew(2 * 3_600_000 + 60_000);
  await fixture.create(backend, present, neverAborted);
  await hasTerminated(cloud, late.nodes[0]!.id);
  expect(
    cloud
      .groups()
      .map(({ groupName }) => groupName)
      .toSorted(),
  ).toEqual(["cluster-e2e-present", "cluster-e2e-stuck"]);
  expect((await backend.list(neverAborted)).map(({ id }) => id)).toEqual(["present"]);
});

test("an ended cluster's id is free at once, even while its machines are shutting down", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  cloud.behaviour.change({ shuttingDownMs: 700 });
  const backend = await fixture.open(region);
  const first = fixture.request("default", oneNode);
  const second = fixture.request("default", oneNode);
  const ended = await fixture.create(backend, first, neverAborted);
  cloud.clock.skew(2 * 3_600_000 + 60_000);
  const cluster = await fixture.create(backend, second, neverAborted);
  expect(cluster.creationId).not.toBe(ended.creationId);
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
});

test("a group without machines holds the name, because a creation in progress has no machines yet", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  const first = fixture.request("default", oneNode);
  const second = fixture.request("default", oneNode);
  const present = await fixture.create(backend, first, neverAborted);
  await cloud.kill(present.nodes[0]!.id);
  await hasTerminated(cloud, present.nodes[0]!.id);
  const refusal = await fixture
    .create(backend, second, neverAborted)
    .catch((error: unknown) => error);
  expect(refusal).toMatchObject({
    id: "cluster-exists",
    facts: { group: cloud.groups()[0]?.groupId },
  });
  expect(leftIn(cloud)).toEqual({ machines: 0, groups: 1 });
  await backend.remove(present, neverAborted);
  expect(leftIn(cloud)).toEqual(nothing);
});
