/** Roll-backs that fail themselves: nothing is forgotten that may still exist. */
import { expect, test } from "bun:test";
import { access, readFile } from "node:fs/promises";
import { creationFiles } from "../../../../src/store/creation-folder.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { examplePlan } from "../../../support/install-example.ts";
import { leftIn, nothing, openFixture, region } from "../../../support/cloud-fixture.ts";
import { longEnough } from "../../../support/long-enough.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { passedMs, systemClock } from "../../../../src/system/runtime.ts";

const oneNode = { counts: { master: 1, agent: 0, public_agent: 0 } } as const;
const failure = new Error("the installation did not start");

// Shows R102.
test.each([
  ["TerminateInstances", "to terminate the machines"],
  ["DescribeSecurityGroups", "to remove the rest"],
])(
  "while %s gets no answer, the roll-back waits and says so; in the end it leaves nothing",
  async (action, aim) => {
    await using fixture = await openFixture({});
    const { cloud, told } = fixture;
    const backend = await fixture.open(region);
    const request = fixture.request("default", {
      ...oneNode,
      complete: async () => {
        // It sends more than one request.
        cloud.faults.add({ action, when: "before", times: 10, lost: true });
        throw failure;
      },
    });
    expect(
      await fixture.create(backend, request, neverAborted).catch((error: unknown) => error),
    ).toBe(failure);
    expect(leftIn(cloud)).toEqual(nothing);
    const wait = new RegExp(
      `^waiting: waiting ${aim}: The API in region us-west-2 did not answer ec2:${action}`,
    );
    expect(told.some((line) => wait.test(line))).toBe(true);
    expect(told.filter((line) => line.startsWith("warn: "))).toEqual([]);
  },
);

// Shows R102.
test("the roll-back repeats a launch whose answer is lost, until it gets one", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  cloud.behaviour.change({ instancesVisibleAfterMs: 3000, tagsVisibleAfterMs: 3500 });
  cloud.faults.add({ action: "RunInstances", when: "after", times: 10, lost: true });
  const backend = await fixture.open(region);
  const controller = new AbortController();
  const creating = fixture.create(backend, fixture.request("default", oneNode), controller.signal);
  while (cloud.instances().length === 0) await Bun.sleep(1);
  controller.abort(failure);
  expect(await creating.catch((error: unknown) => error)).toBe(failure);
  expect(cloud.instances()).toHaveLength(1);
  expect(leftIn(cloud)).toEqual(nothing);
});

// Shows R102.
test("if credentials expire at the launch, possible remains are reported, the folder is kept, and the next create removes them", async () => {
  await using fixture = await openFixture({});
  const { cloud, told } = fixture;
  const backend = await fixture.open(region);
  const directories: string[] = [];
  const request = fixture.request("default", {
    ...oneNode,
    complete: async ({ directory }) => {
      directories.push(directory);
      cloud.faults.add({ action: "*", when: "before", times: "always", code: "RequestExpired" });
      throw failure;
    },
  });
  expect(
    await fixture.create(backend, request, neverAborted).catch((error: unknown) => error),
  ).toBe(failure);
  expect(told.find((line) => line.startsWith("warn: The removal failed"))).toMatch(
    /^warn: The removal failed: .* Machines i-\w+ may be left in region us-west-2: they terminate automatically at /,
  );
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
  const [directory = ""] = directories;
  const { creation, privateKey } = creationFiles(directory);
  expect(JSON.parse(await readFile(creation, "utf8"))).toMatchObject({ state: "abandoned" });
  await access(privateKey);
  cloud.faults.clear();
  const next = await fixture.create(backend, fixture.request("default", oneNode), neverAborted);
  expect(next.state).toBe("running");
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 1 });
  expect(await access(directory).catch(() => "gone")).toBe("gone");
});

// Shows R102.
test.each([
  ["another group refers to it", true, "InvalidGroup.InUse"],
  ["the account may not delete it", true, "UnauthorizedOperation"],
  ["somebody else deleted it", false, "InvalidGroup.NotFound"],
])(
  "a security group that cannot be deleted because %s is reported as a remainder: %p",
  async (_, isReported, code) => {
    await using fixture = await openFixture({});
    const { cloud, told } = fixture;
    const backend = await fixture.open(region);
    const request = fixture.request("default", {
      ...oneNode,
      complete: async () => {
        cloud.faults.add({ action: "DeleteSecurityGroup", when: "before", times: "always", code });
        throw failure;
      },
    });
    expect(
      await fixture.create(backend, request, neverAborted).catch((error: unknown) => error),
    ).toBe(failure);
    const { groupId } = cloud
      .groups()
      .find(({ groupName }) => groupName === "cluster-e2e-default")!;
    const warnings = told.filter((line) => line.startsWith("warn: "));
    expect(warnings).toEqual(
      isReported ? [expect.stringContaining(`Left behind: security group ${groupId}.`)] : [],
    );
  },
);

test("a step of the installation that fails on a node ends the creation while others still start", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  cloud.behaviour.change({ bootDelayMs: [0, 60_000] });
  const backend = await fixture.open(region);
  const request = fixture.request("default", {
    counts: { master: 1, agent: 1, public_agent: 0 },
    // Its script for the preparation fails, and there is no artifact to fetch in the meantime.
    install: examplePlan("/nowhere/artifact.sh", {}),
  });
  const { id } = await failureOf(fixture.create(backend, request, neverAborted));
  expect(["install-failed", "artifact-unreachable"]).toContain(id!);
  // Either launch request may arrive first; the machine of the other one still boots.
  const booted = ["master_0", "agent_0"].filter((node) =>
    fixture.steps.includes(`Boot ${node}: done`),
  );
  expect(booted).toHaveLength(1);
  expect(fixture.steps).toContain(`Prepare ${booted[0]}: failed`);
  expect(leftIn(cloud)).toEqual(nothing);
});

// Shows R102.
test("if no launch is ever answered, the machines that the API describes are terminated, within two minutes", async () => {
  await longEnough(5_000, async (limitMs) => {
    await using fixture = await openFixture({});
    const { cloud } = fixture;
    cloud.faults.add({ action: "RunInstances", when: "after", times: "always", lost: true });
    const backend = await fixture.open(region);
    const request = fixture.request("default", { deadlineMs: passedMs(systemClock) + limitMs });
    expect(
      await fixture.create(backend, request, neverAborted).catch((error: unknown) => error),
    ).toMatchObject({
      id: "deadline-passed",
    });
    expect(leftIn(cloud)).toEqual(nothing);
    expect(fixture.told.filter((line) => line.startsWith("warn: "))).toEqual([]);
    // The limit is that of the creation and its roll-back.
    return cloud.instances().length === 3;
  });
});

// Shows R102.
test("if launch requests never reach the cloud, the roll-back ends within two minutes too", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  cloud.faults.add({ action: "RunInstances", when: "before", times: "always", hangs: true });
  const backend = await fixture.open(region);
  const request = fixture.request("default", {
    ...oneNode,
    deadlineMs: passedMs(systemClock) + 3000,
  });
  expect(
    await fixture.create(backend, request, neverAborted).catch((error: unknown) => error),
  ).toMatchObject({
    id: "deadline-passed",
  });
  expect([cloud.instances().length, leftIn(cloud)]).toEqual([0, nothing]);
});
