import { expect, test } from "bun:test";
import { ClusterError } from "../../../src/errors.ts";
import { leftIn, neverAborted, nothing, openFixture, region, subnetOfTheOtherNetwork } from "./cloud-fixture.ts";

const oneNode = { counts: { master: 1, agent: 0, public_agent: 0 } } as const;

test("refuses an id that is taken, says when the present cluster ends, and leaves that one unharmed", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  await using first = await fixture.request("default", oneNode);
  await using second = await fixture.request("default", oneNode);
  const present = await backend.provision(first, first.onNode, neverAborted);
  const refusal = await backend.provision(second, second.onNode, neverAborted).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ id: "cluster-exists", exitCode: 1 });
  expect((refusal as ClusterError).message).toBe(
    `A cluster "default" exists, or is being created, in region us-west-2. It ends at ${present.expiresAt?.toISOString()}, in 120 min.`,
  );
  expect(await backend.plan(second, neverAborted).catch((error: unknown) => error)).toMatchObject({
    id: "cluster-exists",
  });
  expect(await backend.find("default", neverAborted)).toEqual(present);
  expect(leftIn(fixture.cloud)).toEqual({ machines: 1, groups: 1 });
});

test("of two creates at the same moment one wins, and the other leaves nothing", async () => {
  await using fixture = await openFixture({});
  const backends = [await fixture.open(region), await fixture.open(region)];
  await using first = await fixture.request("default", oneNode);
  await using second = await fixture.request("default", oneNode);
  const outcomes = await Promise.allSettled(
    [first, second].map((request, index) => backends[index]!.provision(request, request.onNode, neverAborted)),
  );
  const won = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  const lost = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
  expect(won).toHaveLength(1);
  expect(lost).toEqual([expect.any(ClusterError)]);
  expect(lost[0]).toMatchObject({ id: "cluster-exists" });
  expect(await backends[0]!.find("default", neverAborted)).toEqual(won[0]);
  expect(leftIn(fixture.cloud)).toEqual({ machines: 1, groups: 1 });
});

test("of two creates in two networks, where no name is the lock, the later one yields", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  // Neither sees the other's machines before it has launched its own.
  cloud.behaviour.change({ tagsVisibleAfterMs: 400, pendingMs: 1500 });
  const backend = await fixture.open(region);
  const subnetId = subnetOfTheOtherNetwork();
  await using first = await fixture.request("default", oneNode);
  await using second = await fixture.request("default", {
    ...oneNode,
    creation: { ...first.creation, subnetId },
  });
  const elder = backend.provision(first, first.onNode, neverAborted);
  await Bun.sleep(50);
  // Launch times have whole seconds.
  cloud.clock.skew(2000);
  const later = backend.provision(second, second.onNode, neverAborted).catch((error: unknown) => error);
  expect(await later).toMatchObject({ id: "cluster-exists" });
  expect((await elder).creationId).toBe(first.creationId);
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
});

test("removes what ended clusters left, and nothing else", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  await using ended = await fixture.request("ended", oneNode);
  await using stuck = await fixture.request("stuck", oneNode);
  await using present = await fixture.request("present", oneNode);
  const first = await backend.provision(ended, ended.onNode, neverAborted);
  const late = await backend.provision(stuck, stuck.onNode, neverAborted);
  // Its machine has powered itself off; the other's has not, for whatever reason.
  await cloud.kill(first.nodes[0]!.id);
  await Bun.sleep(300);
  cloud.clock.skew(2 * 3_600_000 + 60_000);
  await backend.provision(present, present.onNode, neverAborted);
  await Bun.sleep(300);
  expect(
    cloud
      .groups()
      .map(({ groupName }) => groupName)
      .toSorted(),
  ).toEqual(["cluster-e2e-present", "cluster-e2e-stuck"]);
  const states = new Map(cloud.instances().map(({ instanceId, state }) => [instanceId, state]));
  expect(states.get(late.nodes[0]!.id)).toBe("terminated");
  expect((await backend.list(neverAborted)).map(({ id }) => id)).toEqual(["present"]);
});

test("an ended cluster's id is free again at once, even while its machines are still about to end", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  cloud.behaviour.change({ shuttingDownMs: 700 });
  const backend = await fixture.open(region);
  await using first = await fixture.request("default", oneNode);
  await using second = await fixture.request("default", oneNode);
  await backend.provision(first, first.onNode, neverAborted);
  cloud.clock.skew(2 * 3_600_000 + 60_000);
  const cluster = await backend.provision(second, second.onNode, neverAborted);
  expect(cluster.creationId).toBe(second.creationId);
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
});

test("a group by itself holds the name, for a creation under way has no machines yet", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  await using first = await fixture.request("default", oneNode);
  await using second = await fixture.request("default", oneNode);
  const present = await backend.provision(first, first.onNode, neverAborted);
  await cloud.kill(present.nodes[0]!.id);
  await Bun.sleep(300);
  const refusal = await backend.provision(second, second.onNode, neverAborted).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ id: "cluster-exists", facts: { group: cloud.groups()[0]?.groupId } });
  expect(leftIn(cloud)).toEqual({ machines: 0, groups: 1 });
  await backend.destroy(present, neverAborted);
  expect(leftIn(cloud)).toEqual(nothing);
});
