/** The library's Cluster on in-process machines: what it creates and runs, and that it leaves nothing. */
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { CloudBackend, Cluster, ClusterError } from "../../../src/index.ts";
import { leftIn, nothing } from "../../support/cloud-fixture.ts";
import { failureOf } from "../../support/failure-of.ts";
import { until } from "../../support/until.ts";
import { answers, create, openFixture } from "../../support/library-fixture.ts";

test("a platform over plain http from another computer is refused, because it has no checksum", async () => {
  await using fixture = await openFixture();
  const refused = await failureOf(
    Cluster.create(fixture.backend, { platform: "http://192.0.2.7/etcd.sh" }),
  );
  expect(refused).toMatchObject({
    id: "bad-usage",
    message: expect.stringContaining("plain http"),
  });
  expect(fixture.cloud.instances()).toEqual([]);
});

// Shows R81.
test("creates, installs, waits for and uses a cluster, which is gone at the end of its scope", async () => {
  await using fixture = await openFixture();
  const { cloud, folder } = fixture;
  const buildArtifact = join(folder, "artifact.sh");
  await writeFile(buildArtifact, "#!/bin/bash\n# variant: oss\n");
  {
    await using cluster = await Cluster.create(fixture.backend, {
      masters: 1,
      agents: 2,
      publicAgents: 0,
      variant: "oss",
    });
    const ipDetectPath = cluster.ipDetectPath;
    expect((await stat(ipDetectPath)).size).toBeGreaterThan(0);
    expect((await stat(cluster.sshKeyPath)).mode & 0o777).toBe(0o600);
    expect(
      [...cluster.masters, ...cluster.agents, ...cluster.publicAgents].map(
        (node) => node.reference,
      ),
    ).toEqual(["master_0", "agent_0", "agent_1"]);
    const [master] = cluster.masters;
    expect(cluster.baseConfig).toEqual({
      bootstrap_url: `http://${master.privateAddress}:18080`,
      cluster_name: cluster.id,
      exhibitor_storage_backend: "static",
      master_discovery: "static",
      master_list: [master.privateAddress],
      agent_list: cluster.agents.map((node) => node.privateAddress),
      public_agent_list: [],
      resolvers: ["10.0.0.2"],
      ip_detect_public_filename: "genconf/ip-detect-public",
    });
    const clusterConfig = { ...cluster.baseConfig, resolvers: ["10.0.0.3"] };
    await cluster.installFromPath({ buildArtifact, clusterConfig, ipDetectPath });
    await cluster.waitForClusterOss({ skipHttpChecks: true });
    const { stdout, status } = await cluster.masters[0].run({ args: ["hostname"] });
    expect({ stdout, status }).toEqual({
      stdout: `ip-${master.privateAddress?.replaceAll(".", "-")}\n`,
      status: 0,
    });
    expect(leftIn(cloud)).toEqual({ machines: 3, groups: 1 });
  }
  expect(leftIn(cloud)).toEqual(nothing);
  expect(fixture.told).toContain("master_0: Configure: done");
});

// Shows R79.
test("an error of the body is thrown, and the cluster is gone as well", async () => {
  await using fixture = await openFixture();
  const body = async (): Promise<void> => {
    await using cluster = await create(fixture);
    await cluster.masters[0].run({ args: ["false"] });
  };
  const failure = await failureOf(body());
  expect(failure).toBeInstanceOf(ClusterError);
  expect(failure.message).toMatch(/^master_0: false exited with status 1:\n +one\n +two$/);
  expect(failure).toMatchObject({
    id: "remote-command-failed",
    facts: { node: "master_0", status: 1, stdout: "half\n", stderr: "one\ntwo\n" },
  });
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("clusters in the cloud have no snapshots, and names of snapshots are checked", async () => {
  await using fixture = await openFixture();
  await using cluster = await create(fixture, { agents: 0, publicAgents: 0 });
  const refusals = [
    cluster.snapshot("installed"),
    cluster.restore("installed"),
    cluster.snapshots(),
  ];
  for (const refusal of await Promise.all(refusals.map(failureOf)))
    expect(refusal).toMatchObject({ id: "bad-usage", message: expect.stringContaining("(cloud)") });
  expect((await failureOf(cluster.snapshot("../x"))).message).toContain(
    '"../x" is not a snapshot\'s name',
  );
  expect((await cluster.masters[0].run({ args: ["hostname"] })).status).toBe(0);
});

test("if both the body and the destruction fail, both errors are thrown", async () => {
  await using fixture = await openFixture();
  const fault = { action: "TerminateInstances", when: "before", times: "always" } as const;
  const body = async (): Promise<void> => {
    await using _cluster = await create(fixture);
    fixture.cloud.faults.add({ ...fault, code: "UnauthorizedOperation", message: "You may not." });
    throw new Error("the body's own");
  };
  const failure = await failureOf(body());
  expect(failure).toBeInstanceOf(SuppressedError);
  expect((failure as SuppressedError).suppressed).toMatchObject({ message: "the body's own" });
  expect((failure as SuppressedError).error).toMatchObject({ id: "not-permitted" });
  fixture.cloud.faults.clear();
});

test("a failed destruction can be retried, and a successful one is done once", async () => {
  await using fixture = await openFixture();
  const { cloud } = fixture;
  const cluster = await create(fixture);
  cloud.faults.add({
    action: "TerminateInstances",
    when: "before",
    times: 1,
    code: "UnauthorizedOperation",
  });
  expect((await failureOf(cluster.destroy())).id).toBe("not-permitted");
  expect(await failureOf(cluster.masters[0].run({ args: ["hostname"] }))).toMatchObject({
    id: "cluster-not-found",
    message: "`destroy` was called for this cluster.",
  });
  await cluster.destroy();
  expect(leftIn(cloud)).toEqual(nothing);
  cloud.requests.clear();
  await cluster.destroy();
  expect(cloud.requests.entries).toEqual([]);
  expect((await failureOf(cluster.masters[0].run({ args: ["hostname"] }))).id).toBe(
    "cluster-not-found",
  );
  expect((await failureOf(cluster.waitForClusterOss())).id).toBe("cluster-not-found");
});

test("after its destruction, a cluster does nothing to another one with its id", async () => {
  await using fixture = await openFixture();
  const former = await create(fixture, { clusterId: "reused" });
  await former.destroy();
  await using _other = await create(fixture, { clusterId: "reused" });
  const calls = [
    former.run({ args: ["hostname"] }),
    former.saveLogs(),
    former.waitForClusterOss(),
    former.export(),
    former.restart(),
    former.faults(),
  ];
  for (const failure of await Promise.all(calls.map(failureOf))) {
    expect(failure).toMatchObject({
      id: "cluster-not-found",
      message: 'Cluster "reused" has been destroyed.',
    });
  }
  await former.destroy();
  expect(former.baseConfig["cluster_name"]).toBe("reused");
  expect(leftIn(fixture.cloud)).toEqual({ machines: 3, groups: 1 });
});

test("a creation that fails or is cancelled leaves nothing", async () => {
  await using fixture = await openFixture();
  fixture.cloud.answers.replace([{ pattern: "resolv\\.conf", status: 1 }, ...answers]);
  expect((await failureOf(create(fixture))).id).toBe("remote-command-failed");
  expect(leftIn(fixture.cloud)).toEqual(nothing);
  fixture.cloud.answers.replace(answers);
  fixture.cloud.behaviour.change({ bootDelayMs: [60_000] });
  const cancelled = new Error("no longer wanted");
  const cancellation = new AbortController();
  const launched = fixture.cloud.instances().length;
  const failure: Promise<unknown> = failureOf(
    create(fixture, { cancelSignal: cancellation.signal }),
  );
  await until("the launch", () => fixture.cloud.instances().length > launched);
  cancellation.abort(cancelled);
  expect(await failure).toBe(cancelled);
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("a creation whose onProgress fails is not disturbed, nor is its removal", async () => {
  await using fixture = await openFixture();
  const { cloud, folder } = fixture;
  const told: string[] = [];
  const environment = { ...cloud.environment, XDG_STATE_HOME: join(folder, "state") };
  const openBackend = (last: string) =>
    new CloudBackend({
      region: cloud.region,
      linuxDistribution: "debian-12",
      environment,
      onProgress: (line) => {
        told.push(line);
        if (line.startsWith(last)) throw new Error("the stream is closed");
      },
    });
  {
    await using cluster = await create({ ...fixture, backend: openBackend("Launch: done") });
    expect(told.at(-1)).toBe("Launch: done");
    await cluster.masters[0].run({ args: ["hostname"] });
  }
  cloud.answers.replace([{ pattern: "resolv\\.conf", status: 1 }, ...answers]);
  const failure = await failureOf(
    create({ ...fixture, backend: openBackend("Remove what was created") }),
  );
  expect(failure.id).toBe("remote-command-failed");
  expect(leftIn(cloud)).toEqual(nothing);
});

test("all errors that can be detected here are reported at once, without a request to the cloud", async () => {
  await using fixture = await openFixture();
  const wrong = { masters: 0, agents: -1, clusterId: "not one" };
  const failure = await failureOf(create(fixture, wrong));
  expect(failure.id).toBe("bad-usage");
  expect(failure.facts?.["problems"]).toEqual([
    expect.stringContaining('`clusterId`: "not one" is not a cluster id'),
    "`masters`: 0 is not a whole number from 1 to 1000",
    "`agents`: -1 is not a whole number from 0 to 1000",
  ]);
  expect((await failureOf(create(fixture, { publicAgents: 999 }))).message).toContain(
    "1001 nodes are too many",
  );
  const options = {
    region: "here",
    linuxDistribution: "plan-9",
    adminCidrs: ["all"],
    customTags: { "aws:mine": "1" },
  };
  expect(() => new CloudBackend(options)).toThrow(
    '`region`: "here" is not a region such as us-west-2; `linuxDistribution`: "plan-9" is not one of centos-7, ',
  );
  expect(fixture.cloud.requests.entries).toEqual([]);
});

test("clusters are listed, and printing one shows its nodes", async () => {
  await using fixture = await openFixture();
  await using cluster = await create(fixture, { agents: 0, publicAgents: 0 });
  expect(await Cluster.list(fixture.backend)).toEqual([
    expect.objectContaining({ id: cluster.id, state: "running", variant: "oss" }),
  ]);
  const { publicAddress } = cluster.masters[0];
  expect(Bun.inspect(cluster)).toBe(`Cluster ${cluster.id} { master_0: ${publicAddress} }`);
});

test("an existing cluster is found by its id, with everything known about it", async () => {
  await using fixture = await openFixture();
  expect((await failureOf(Cluster.find(fixture.backend, "mine"))).id).toBe("cluster-not-found");
  await using made = await create(fixture, { clusterId: "mine" });
  const found = await Cluster.find(fixture.backend, "mine");
  expect(found.baseConfig).toEqual(made.baseConfig);
  expect(found.ipDetectPath).toBe(made.ipDetectPath);
  expect(found.expiresAt).toEqual(made.expiresAt);
  const { status, stderr } = await found.masters[0].run({ args: ["false"], reject: false });
  expect({ status, stderr }).toEqual({ status: 1, stderr: "one\ntwo\n" });
});

test("a machine without the key can see and destroy the cluster, but can't log in", async () => {
  await using fixture = await openFixture();
  await create(fixture, { clusterId: "mine" });
  const environment = {
    ...fixture.backend.settings().runtime.environment,
    XDG_STATE_HOME: join(fixture.folder, "elsewhere"),
  };
  const elsewhere = new CloudBackend({ region: fixture.cloud.region, environment });
  const found = await Cluster.find(elsewhere, "mine");
  expect(found.masters[0].publicAddress).toMatch(/^127\./);
  expect(() => found.baseConfig).toThrow('The SSH key of cluster "mine" is not on this computer.');
  expect((await failureOf(found.masters[0].run({ args: ["hostname"] }))).id).toBe("key-missing");
  expect((await failureOf(found.waitForClusterOss())).id).toBe("key-missing");
  await found.destroy();
  expect(leftIn(fixture.cloud)).toEqual(nothing);
});

test("new Cluster() says what to call instead", async () => {
  const construct = Reflect.construct as (made: unknown, values: readonly unknown[]) => unknown;
  for (const values of [[], [{}], [new CloudBackend({ region: "us-west-2" })]]) {
    const failure = await failureOf(Promise.try(() => construct(Cluster, values)));
    expect(failure.id).toBe("bad-usage");
    expect(failure.hint).toContain("Cluster.create");
  }
});
