import { expect, test } from "bun:test";
import { findCluster } from "../../../../src/cluster/find-cluster.ts";
import type { ClusterError } from "../../../../src/errors.ts";
import { openFixture, region } from "../../../support/cloud-fixture.ts";
import { serveOnLoopback } from "../../../support/loopback-server.ts";
import { until } from "../../../support/until.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const oneNode = { counts: { master: 1, agent: 0, public_agent: 0 } } as const;

test("a cluster in another region is found only for the error message", async () => {
  await using fixture = await openFixture({});
  const here = await fixture.open(region);
  const request = fixture.request("default", oneNode);
  await fixture.create(here, request, neverAborted);
  const elsewhere = await fixture.open("eu-central-1");
  fixture.cloud.requests.clear();
  expect(await elsewhere.find("default", neverAborted)).toBeUndefined();
  expect(fixture.cloud.requests.counts()).toEqual({ DescribeInstances: 1 });
  expect(await elsewhere.scope!.findElsewhere("default", neverAborted)).toEqual({
    scopes: [region],
    unreachable: [],
  });
  expect(await here.scope!.findElsewhere("default", neverAborted)).toEqual({
    scopes: [],
    unreachable: [],
  });
});

test("a region that cannot be asked for a missing cluster is named with its reason", async () => {
  await using fixture = await openFixture({});
  const refusal = { when: "before", times: "always", code: "UnauthorizedOperation" } as const;
  fixture.cloud.faults.add({ ...refusal, action: "DescribeInstances", region: "us-east-1" });
  const here = await fixture.open(region);
  const failure = await findCluster(here, "nightly", neverAborted).catch((error: unknown) => error);
  expect(failure).toMatchObject({ id: "cluster-not-found" });
  expect((failure as ClusterError).hint).toMatch(
    /^It may be in us-east-1, whose clusters cannot be listed: The account may not call ec2:DescribeInstances/,
  );
});

test("lists the clusters of all enabled regions, and names a region that rejects the request with its reason", async () => {
  await using fixture = await openFixture({});
  for (const [name, clusterId] of [
    [region, "west"],
    ["eu-central-1", "middle"],
  ] as const) {
    await fixture.create(
      await fixture.open(name),
      fixture.request(clusterId, oneNode),
      neverAborted,
    );
  }
  const refusal = { when: "before", times: "always", code: "UnauthorizedOperation" } as const;
  fixture.cloud.faults.add({ ...refusal, action: "DescribeInstances", region: "us-east-1" });
  const backend = await fixture.open(region);
  const { clusters, unreachable } = await backend.cloud!.listAll(neverAborted);
  expect(clusters.map(({ id, region: name }) => [id, name])).toEqual([
    ["middle", "eu-central-1"],
    ["west", region],
  ]);
  expect(unreachable).toEqual([
    { scope: "us-east-1", reason: expect.stringContaining("may not call ec2:DescribeInstances") },
  ]);
});

test.each(["af-south-1", "me-south-1", "xx-nowhere-1"])(
  "the error about region %s, which isn't enabled, lists the enabled ones",
  async (name) => {
    await using fixture = await openFixture({});
    const backend = await fixture.open(name);
    const error = await backend.list(neverAborted).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ id: "region-not-enabled", exitCode: 5, facts: { region: name } });
    const enabled = [
      "ap-east-1",
      "ap-southeast-2",
      "eu-central-1",
      "sa-east-1",
      "us-east-1",
      "us-west-2",
    ];
    expect((error as ClusterError).hint).toContain(enabled.join(", "));
  },
);

test("in a region without a default network, the error asks for a subnet", async () => {
  await using fixture = await openFixture({});
  const backend = await fixture.open("sa-east-1");
  const request = fixture.request("default", oneNode);
  const error = await fixture
    .create(backend, request, neverAborted)
    .catch((reason: unknown) => reason);
  expect(error).toMatchObject({
    id: "no-default-network",
    exitCode: 5,
    facts: { region: "sa-east-1" },
  });
  expect((error as ClusterError).hint).toContain("`subnetId`");
  expect(fixture.cloud.requests.counts()).not.toHaveProperty("CreateSecurityGroup");
});

test("an endpoint where nothing listens is an error after some attempts", async () => {
  await using fixture = await openFixture({ AWS_ENDPOINT_URL_EC2: "http://127.0.0.1:9" });
  const backend = await fixture.open(region);
  const error = await backend.list(neverAborted).catch((reason: unknown) => reason);
  const facts = { region, action: "DescribeInstances" };
  expect(error).toMatchObject({ id: "cloud-failed", transient: true, facts });
  expect((error as ClusterError).message).toContain("http://127.0.0.1:9");
});

test("an aborted call rejects at once with the signal's reason", async () => {
  await using fixture = await openFixture({});
  fixture.cloud.behaviour.change({ apiDelayMs: 10_000 });
  const backend = await fixture.open(region);
  const controller = new AbortController();
  const reason = new Error("enough");
  const listing = backend.list(controller.signal).catch((error: unknown) => error);
  await until("the request", () => fixture.cloud.requests.entries.length > 0);
  controller.abort(reason);
  expect(await listing).toBe(reason);
});

test("if this computer's public address can't be determined, the error names the option", async () => {
  await using fixture = await openFixture({ CLUSTER_CHECK_ADDRESS_URL: "http://127.0.0.1:9/" });
  const backend = await fixture.open(region);
  const request = fixture.request("default", oneNode);
  const error = await backend.plan(request, neverAborted).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ id: "machine-not-set-up", exitCode: 5 });
  expect((error as ClusterError).hint).toContain("`adminCidrs`");
});

test("the address is queried without the proxy that all other requests use", async () => {
  using proxy = serveOnLoopback(() => new Response("198.51.100.1"), { host: "any" });
  await using fixture = await openFixture({});
  const script = `
    const { checkAddress } = await import("${import.meta.dir}/../../../../src/backend/cloud/launch/network.ts");
    console.log(await checkAddress({ environment: process.env, signal: new AbortController().signal }));
  `;
  const address = `http://127.0.0.1:${proxy.port}`;
  const child = Bun.spawn([process.execPath, "-e", script], {
    env: {
      ...fixture.runtime.environment,
      HTTP_PROXY: address,
      http_proxy: address,
      HTTPS_PROXY: address,
    },
    stderr: "inherit",
  });
  expect(await new Response(child.stdout).text()).toBe("127.0.0.1\n");
});
