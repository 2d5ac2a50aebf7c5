import { expect, test } from "bun:test";
import { nodeReference, roles } from "../../../../src/model/cluster-record.ts";
import { openConnections } from "../../../../src/cluster/connections.ts";
import { openFixture, region, leftIn, nothing } from "../../../support/cloud-fixture.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { imagesOf } from "../../../local-cloud/catalogue/images.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

test("creates machines that accept logins, and finds, lists and destroys them", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  const request = fixture.request("default", {});
  const cluster = await fixture.create(backend, request, neverAborted);
  expect(cluster.nodes.map(nodeReference)).toEqual(["master_0", "agent_0", "public_agent_0"]);
  expect(cluster.state).toBe("running");
  expect(fixture.steps.toSorted()).toEqual([
    "Boot agent_0: done",
    "Boot master_0: done",
    "Boot public_agent_0: done",
    "Check for existing clusters: done",
    "Create the security group: done",
    "Launch: done",
  ]);
  const [master] = cluster.nodes;
  await using connections = openConnections(cluster.directory, fixture.runtime);
  const connection = await connections.connect(master!, neverAborted);
  expect(connection.isOpen).toBe(true);
  expect(await backend.find("default", neverAborted)).toEqual(cluster);
  expect(await backend.list(neverAborted)).toEqual([cluster]);
  await backend.remove(cluster, neverAborted);
  await backend.remove(cluster, neverAborted);
  expect(await backend.find("default", neverAborted)).toBeUndefined();
  expect(leftIn(cloud)).toEqual(nothing);
});

test("volumes of an own image end with their machines, even if the image says that they remain", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  const { id } = imagesOf(region).find(({ name }) => name === "our-debian-12-with-docker-1")!;
  const options = {
    instanceType: "m5.large",
    customTags: [],
    adminCidrs: [],
    image: { id, user: "admin" },
  };
  const cluster = await fixture.create(
    backend,
    fixture.request("default", { options }),
    neverAborted,
  );
  const ending = { encrypted: true, deleteOnTermination: true };
  expect(
    cloud.instances()[0]?.volumes.toSorted((a, b) => a.deviceName.localeCompare(b.deviceName)),
  ).toMatchObject([
    { deviceName: "/dev/xvda", sizeGiB: 60, ...ending },
    { deviceName: "/dev/xvdb", sizeGiB: 20, ...ending },
    { deviceName: "/dev/xvdc", sizeGiB: 5, ...ending },
  ]);
  await backend.remove(cluster, neverAborted);
  expect(leftIn(cloud)).toEqual(nothing);
});

test.each([
  ["m6g.large", "x86_64", "arm64"],
  ["m5.large", "arm64", "x86_64"],
] as const)(
  "%s is refused for an image of %s before anything is created",
  async (instanceType, architecture, has) => {
    await using fixture = await openFixture({});
    const backend = await fixture.open(region);
    const image = imagesOf(region).find(
      (each) => each.architecture === architecture && each.distribution === "debian-12",
    )!;
    const options = {
      instanceType,
      customTags: [],
      adminCidrs: [],
      image: { id: image.id, user: "admin" },
    };
    const error = await failureOf(
      backend.plan(fixture.request("default", { options }), neverAborted),
    );
    expect(error).toMatchObject({ id: "bad-usage", exitCode: 2 });
    expect(error.message).toContain(
      `needs processors of ${architecture}, but ${instanceType} has ${has}.`,
    );
  },
);

test("launches machines that terminate themselves, with tags from which the cluster can be read back", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  const request = fixture.request("Mine_1.x", {
    variant: "enterprise",
    counts: { master: 1, agent: 2, public_agent: 0 },
    options: {
      instanceType: "t3.large",
      customTags: [{ key: "owner", value: "me" }],
      adminCidrs: ["192.0.2.0/24"],
    },
  });
  const startMs = Date.now();
  const cluster = await fixture.create(backend, request, neverAborted);
  const agent = cloud.instances().find(({ instanceId }) => instanceId === cluster.nodes[2]?.id);
  expect(agent).toMatchObject({
    instanceType: "t3.large",
    shutdownBehavior: "terminate",
    launchIndex: 1,
    volumes: [{ sizeGiB: 60, encrypted: true, deleteOnTermination: true }],
    tags: {
      Name: "Mine_1.x agent",
      "cluster-e2e:cluster-id": "Mine_1.x",
      "cluster-e2e:creation-id": cluster.creationId,
      "cluster-e2e:role": "agent",
      "cluster-e2e:index-base": "0",
      "cluster-e2e:counts": "master=1 agent=2 public_agent=0",
      "cluster-e2e:variant": "enterprise",
      "cluster-e2e:distribution": "debian-12",
      "cluster-e2e:ssh-user": "admin",
      owner: "me",
    },
  });
  expect(agent?.volumeTags).toEqual(agent?.tags ?? {});
  expect(cluster.expiresAt!.getTime() - 7_200_000).toBeWithin(startMs - 3_000, Date.now() + 1);
  expect(agent?.userData).toContain(
    `cluster-e2e-deadline ${cluster.expiresAt!.getTime() / 1000}\\n`,
  );
  expect(agent?.userData).not.toContain(cloud.secretAccessKey);
  expect(
    cloud.groups().find(({ groupName }) => groupName === "cluster-e2e-Mine_1.x"),
  ).toMatchObject({
    tags: {
      "cluster-e2e:creation-id": cluster.creationId,
      "cluster-e2e:expires-at": cluster.expiresAt!.toISOString(),
    },
    rules: [
      { protocol: "-1" },
      { protocol: "tcp", fromPort: 22, source: { cidr: "192.0.2.0/24" } },
      { protocol: "tcp", fromPort: 80, source: { cidr: "192.0.2.0/24" } },
      { protocol: "tcp", fromPort: 443, source: { cidr: "192.0.2.0/24" } },
    ],
  });
  expect(cluster).toMatchObject({
    variant: "enterprise",
    distribution: "debian-12",
    maximumCost: 0.62,
  });
});

// Shows R126.
test("machines in the cloud boot with the host key of their role", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const request = fixture.request("default", { counts: { master: 1, agent: 2, public_agent: 0 } });
  await fixture.create(backend, request, neverAborted);
  const machines = Map.groupBy(fixture.cloud.instances(), ({ tags }) => tags["cluster-e2e:role"]);
  const keysOf = (role: string): Set<unknown> =>
    new Set(machines.get(role)?.map(({ userData }) => /"ed25519_private": .*/.exec(userData)?.[0]));
  expect(keysOf("agent").size).toBe(1);
  expect(keysOf("master").size).toBe(1);
  expect(keysOf("agent")).not.toEqual(keysOf("master"));
});

// Shows R106.
test("the deadline counts from the API's clock, not from this computer's", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.clock.skew(-180_000);
  const backend = await fixture.open(region);
  const request = fixture.request("default", {});
  const startMs = Date.now();
  const cluster = await fixture.create(backend, request, neverAborted);
  expect(cluster.expiresAt!.getTime() - 7_200_000 + 180_000).toBeWithin(
    startMs - 3_000,
    Date.now() + 1,
  );
});

// Shows R107.
test("sends as many requests for 300 machines as for three", async () => {
  const callsFor = async (agents: number) => {
    await using fixture = await openFixture({});
    const backend = await fixture.open(region);
    const request = fixture.request("default", {
      counts: { master: 1, agent: agents, public_agent: 1 },
    });
    const cluster = await fixture.create(backend, request, neverAborted);
    expect(cluster.nodes).toHaveLength(agents + 2);
    expect(new Set(cluster.nodes.map(nodeReference)).size).toBe(agents + 2);
    expect(fixture.steps.filter((step) => /^Boot .*: done$/.test(step))).toHaveLength(agents + 2);
    // The first call takes the inventory, all others poll.
    const { DescribeInstances: polls, ...calls } = fixture.cloud.requests.counts();
    expect(polls).toBeGreaterThan(1);
    return calls;
  };
  expect(await callsFor(298)).toEqual(await callsFor(1));
});

test("planning changes nothing, and a creation sends each request once", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const backend = await fixture.open(region);
  const request = fixture.request("default", {});
  const { summary: plan } = await backend.plan(request, neverAborted);
  expect(Object.keys(cloud.requests.counts()).toSorted()).toEqual([
    "DescribeImages",
    "DescribeInstanceTypes",
    "DescribeInstances",
    "DescribeSubnets",
  ]);
  expect(plan.lines.map(([label]) => label)).toEqual([
    "Cluster",
    "Region",
    "Credentials",
    "Image",
    "Instance metadata",
    "Machines",
    "Subnets",
    "Security group",
    "Custom tags",
    "Cost",
    "Ends",
  ]);
  expect(plan.facts).toMatchObject({
    cluster: "default",
    region,
    instanceType: "m5.large",
    counts: { masters: 1, agents: 1, publicAgents: 1 },
    rules: { ports: [22, 80, 443], adminCidrs: ["127.0.0.1/32"] },
    maximumCostDollars: 0.72,
  });
  cloud.requests.clear();
  await fixture.create(backend, request, neverAborted);
  expect(cloud.requests.counts()).toMatchObject({ DescribeImages: 1, DescribeSubnets: 1 });
});

test("an instance type that the region lacks is refused before anything is requested", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const request = fixture.request("default", {
    options: { instanceType: "m99.large", customTags: [], adminCidrs: [] },
  });
  const message = `\`instanceType\`: region ${region} does not offer m99.large.`;
  expect(await failureOf(fixture.create(backend, request, neverAborted))).toMatchObject({
    id: "bad-usage",
    message,
  });
  const asked = Object.keys(fixture.cloud.requests.counts());
  expect(asked.filter((action) => !action.startsWith("Describe"))).toEqual([]);
});

test.each([
  ["none", []],
  ["team=storage", [{ key: "team", value: "storage" }]],
  [
    "team=storage, ticket=7",
    [
      { key: "team", value: "storage" },
      { key: "ticket", value: "7" },
    ],
  ],
])("a plan shows the custom tags: %s", async (shown, customTags) => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const request = fixture.request("default", {
    options: { instanceType: "m5.large", customTags, adminCidrs: [] },
  });
  const { summary } = await backend.plan(request, neverAborted);
  expect(Object.fromEntries(summary.lines)).toMatchObject({ "Custom tags": shown });
  expect(summary.facts).toMatchObject({ customTags });
});

test("if a later step of the creation fails, the machines are terminated", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open(region);
  const failure = new Error("the installation did not start");
  const request = fixture.request("default", { complete: () => Promise.reject(failure) });
  const outcome = await fixture
    .create(backend, request, neverAborted)
    .catch((error: unknown) => error);
  expect(outcome).toBe(failure);
  expect(fixture.steps.at(-1)).toBe("Remove what was created: done");
  expect(leftIn(fixture.cloud)).toEqual(nothing);
  expect(request.failures[0]?.nodes.map((node) => node.role)).toEqual([...roles]);
});
