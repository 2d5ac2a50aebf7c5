/**
 * Somebody else in the account who may launch and tag instances and create security groups. What this computer's own files say about a cluster
 * counts more than what tags say.
 */

import { join } from "node:path";
import {
  AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroupCommand,
  EC2Client,
  RunInstancesCommand,
} from "@aws-sdk/client-ec2";
import { expect, test } from "bun:test";
import { createCloudBackend } from "../../../../src/backend/cloud/cloud-backend.ts";
import { tagNames } from "../../../../src/backend/cloud/tags.ts";
import type { Backend } from "../../../../src/backend/contract.ts";
import { admitRange, listAdmittedRanges, removeRange } from "../../../support/admission.ts";
import { exportCluster, parseHandOver } from "../../../../src/cluster/export-cluster.ts";
import { importCluster } from "../../../../src/cluster/import-cluster.ts";
import type { ClusterRecord } from "../../../../src/model/cluster-record.ts";
import type { Runtime } from "../../../../src/system/runtime.ts";
import { networksOf } from "../../../local-cloud/catalogue/networks.ts";
import { regions } from "../../../local-cloud/catalogue/regions.ts";
import type { LocalCloud } from "../../../local-cloud/local-cloud.ts";
import {
  type CloudFixture,
  leftIn,
  openFixture,
  region,
  subnetOfTheOtherNetwork,
} from "../../../support/cloud-fixture.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { until } from "../../../support/until.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const office = "192.0.2.0/24";
const oneNode = {
  counts: { master: 1, agent: 0, public_agent: 0 },
  options: { instanceType: "m5.large", customTags: [], adminCidrs: [office] },
} as const;
const lifetimeMs = 2 * 3_600_000;

async function create(fixture: CloudFixture, id: string): Promise<ClusterRecord> {
  return fixture.create(await fixture.open(region), fixture.request(id, oneNode), neverAborted);
}

/** Launches an instance in a security group, without tags. */
async function launch(
  { cloud }: CloudFixture,
  place: { readonly groupId?: string; readonly subnetId?: string } = {},
) {
  const image = cloud.instances()[0]?.imageId ?? "ami-0";
  const { Instances = [] } = await clientOf(cloud).send(
    new RunInstancesCommand({
      ImageId: image,
      InstanceType: "m5.large",
      MinCount: 1,
      MaxCount: 1,
      ...(place.groupId !== undefined && { SecurityGroupIds: [place.groupId] }),
      ...(place.subnetId !== undefined && { SubnetId: place.subnetId }),
    }),
  );
  const id = Instances[0]!.InstanceId!;
  await until("it runs", () => stateOf(cloud, id) === "running");
  return id;
}

const stateOf = (cloud: LocalCloud, id: string): string | undefined =>
  cloud.instances().find(({ instanceId }) => instanceId === id)?.state;

/** The tags of the cluster's only machine, with some of them changed. */
function copiedTags(
  { cloud }: CloudFixture,
  { nodes }: ClusterRecord,
  changes: Readonly<Record<string, string>>,
) {
  const { tags } = cloud.instances().find(({ instanceId }) => instanceId === nodes[0]!.id)!;
  return { ...tags, ...changes };
}

const groupOf = (cloud: LocalCloud, id: string) =>
  cloud.groups().find(({ groupName }) => groupName.endsWith(`-${id}`))!;

// Shows R108, R133.
test("a changed deadline in a tag neither ends a running cluster nor frees its id", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const cluster = await create(fixture, "nightly");
  const [{ id } = { id: "" }] = cluster.nodes;
  await fixture.tag(id, { [tagNames.expiresAt]: "2020-01-01T00:00:00Z" });
  await create(fixture, "other");
  expect(stateOf(cloud, id)).toBe("running");
  expect((await failureOf(create(fixture, "nightly"))).id).toBe("cluster-exists");
  expect(stateOf(cloud, id)).toBe("running");
  cloud.clock.skew(lifetimeMs + 60_000);
  await create(fixture, "third");
  await until("the expired machine ends", () => stateOf(cloud, id) === "terminated");
});

// Shows R108, R133.
test("an expired machine with all tags of a running node does not let the next create of the id end the cluster", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  await create(fixture, "first");
  const made = { GroupName: "cluster-e2e-nightly", Description: "x", VpcId: otherNetwork() };
  const { GroupId: groupId = "" } = await clientOf(cloud).send(
    new CreateSecurityGroupCommand(made),
  );
  const foreign = await launch(fixture, { groupId, subnetId: subnetOfTheOtherNetwork() });
  cloud.clock.skew(lifetimeMs + 60_000);
  const cluster = await create(fixture, "nightly");
  await fixture.tag(
    foreign,
    copiedTags(fixture, cluster, { [tagNames.expiresAt]: "2020-01-01T00:00:00Z" }),
  );
  expect((await failureOf(create(fixture, "nightly"))).id).toBe("cluster-exists");
  expect(stateOf(cloud, cluster.nodes[0]!.id)).toBe("running");
});

// Shows R108.
test("expired machines are ended where only their network interfaces name security groups", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  cloud.behaviour.change({ groupsOnlyAtInterfaces: true });
  const cluster = await create(fixture, "nightly");
  cloud.clock.skew(lifetimeMs + 60_000);
  await create(fixture, "other");
  await until(
    "the expired machine ends",
    () => stateOf(cloud, cluster.nodes[0]!.id) === "terminated",
  );
});

// Shows R133.
test("an older machine with the cluster's id in its tags does not become the cluster", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  await create(fixture, "first");
  const foreign = await launch(fixture);
  // Launch times are in whole seconds.
  cloud.clock.skew(2000);
  const cluster = await create(fixture, "nightly");
  const backend = await fixture.open(region);
  for (const creationId of ["fedcba9876543210", cluster.creationId]) {
    for (const indexBase of ["0", "5"]) {
      await fixture.tag(
        foreign,
        copiedTags(fixture, cluster, {
          [tagNames.creationId]: creationId,
          [tagNames.indexBase]: indexBase,
        }),
      );
      const found = await backend.find("nightly", neverAborted);
      expect({ creationId: found?.creationId, nodes: found?.nodes.map(({ id }) => id) }).toEqual({
        creationId: cluster.creationId,
        nodes: cluster.nodes.map(({ id }) => id),
      });
    }
  }
  const named = `instance ${foreign}: its tags name a cluster of this computer, which did not launch it`;
  expect(fixture.told.join("\n")).toContain(named);
});

test("a foreign machine in the cluster's own group is none of its nodes either, and is not removed with it", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const cluster = await create(fixture, "nightly");
  const foreign = await launch(fixture, { groupId: groupOf(cloud, "nightly").groupId });
  await fixture.tag(foreign, copiedTags(fixture, cluster, { [tagNames.indexBase]: "5" }));
  const backend = await fixture.open(region);
  expect((await backend.find("nightly", neverAborted))?.nodes.map(({ id }) => id)).toEqual([
    cluster.nodes[0]!.id,
  ]);
  expect((await backend.list(neverAborted)).flatMap(({ nodes }) => nodes)).toHaveLength(1);
});

// Shows R102, R133.
test("a machine outside of the cluster's group that has all of its tags is not removed with it", async () => {
  await using fixture = await openFixture({});
  const { cloud } = fixture;
  const cluster = await create(fixture, "nightly");
  const foreign = await launch(fixture);
  await fixture.tag(foreign, copiedTags(fixture, cluster, { [tagNames.indexBase]: "5" }));
  await (await fixture.open(region)).remove(cluster, neverAborted);
  expect(stateOf(cloud, foreign)).toBe("running");
  expect(leftIn(cloud)).toEqual({ machines: 1, groups: 0 });
});

/** A cluster, and in another network an older group of its name with its tags, with a machine in it that has the cluster's tags too. */
async function openWithTwin(): Promise<
  CloudFixture & { readonly backend: Backend<unknown>; readonly twin: string }
> {
  const fixture = await openFixture({});
  const { cloud } = fixture;
  const client = clientOf(cloud);
  const made = { GroupName: "cluster-e2e-nightly", Description: "x", VpcId: otherNetwork() };
  const { GroupId: twin = "" } = await client.send(new CreateSecurityGroupCommand(made));
  const ssh = { IpProtocol: "tcp", FromPort: 22, ToPort: 22, IpRanges: [{ CidrIp: office }] };
  const IpPermissions = [{ IpProtocol: "-1", UserIdGroupPairs: [{ GroupId: twin }] }, ssh];
  await client.send(new AuthorizeSecurityGroupIngressCommand({ GroupId: twin, IpPermissions }));
  const cluster = await create(fixture, "nightly");
  await fixture.tag(twin, cloud.groups().find(({ groupId }) => groupId !== twin)!.tags);
  const foreign = await launch(fixture, { groupId: twin, subnetId: subnetOfTheOtherNetwork() });
  await fixture.tag(foreign, copiedTags(fixture, cluster, { [tagNames.indexBase]: "5" }));
  return { ...fixture, backend: await fixture.open(region), twin };
}

const otherNetwork = (): string =>
  networksOf(
    regions.find(({ name }) => name === region)!,
    "172.31.0.0/16",
  ).vpcs.find(({ isDefault }) => !isDefault)!.id;

const rulesOf = (cloud: LocalCloud, groupId: string) =>
  cloud
    .groups()
    .find((group) => group.groupId === groupId)!
    .rules.flatMap(({ source }) => ("cidr" in source ? [source.cidr] : []));

// Shows R117.
test("of two groups with the cluster's name and tags, only the one that this computer launched it in is changed", async () => {
  await using attacked = await openWithTwin();
  const { backend, cloud, twin } = attacked;
  const own = cloud
    .groups()
    .find(({ groupName, groupId }) => groupName.endsWith("-nightly") && groupId !== twin)!.groupId;
  await admitRange(backend, "198.51.100.7");
  expect([...new Set(rulesOf(cloud, own))].toSorted()).toEqual([office, "198.51.100.7/32"]);
  await removeRange(backend, office);
  expect([...new Set(rulesOf(cloud, own))]).toEqual(["198.51.100.7/32"]);
  expect(rulesOf(cloud, twin)).toEqual([office]);
});

// Shows R117.
test("a computer that did not create the cluster changes neither of two such groups, and names both", async () => {
  await using attacked = await openWithTwin();
  const { cloud, runtime } = attacked;
  const backend = await createCloudBackend(
    { ...elsewhere(runtime), signal: neverAborted },
    { region },
  );
  const before = JSON.stringify(cloud.groups());
  for (const attempt of [
    () => removeRange(backend, office),
    () => admitRange(backend, "198.51.100.7"),
    () => listAdmittedRanges(backend),
  ]) {
    const failure = await failureOf(attempt());
    expect(failure).toMatchObject({ id: "cloud-failed", transient: false });
    for (const { groupId } of cloud.groups()) expect(failure.message).toContain(groupId);
  }
  expect(JSON.stringify(cloud.groups())).toBe(before);
});

// Shows R116, R133.
test("import finds the exported cluster, although an older machine in a group of its name claims the id", async () => {
  await using fixture = await openFixture({});
  const { cloud, runtime } = fixture;
  await create(fixture, "first");
  const made = { GroupName: "cluster-e2e-nightly", Description: "x", VpcId: otherNetwork() };
  const { GroupId: groupId = "" } = await clientOf(cloud).send(
    new CreateSecurityGroupCommand(made),
  );
  const foreign = await launch(fixture, { groupId, subnetId: subnetOfTheOtherNetwork() });
  // Launch times are in whole seconds.
  cloud.clock.skew(2000);
  const cluster = await create(fixture, "nightly");
  const exported = await exportCluster(await fixture.open(region), "nightly", neverAborted);
  await fixture.tag(
    foreign,
    copiedTags(fixture, cluster, { [tagNames.creationId]: "fedcba9876543210" }),
  );
  const there = elsewhere(runtime);
  const backend = await createCloudBackend({ ...there, signal: neverAborted }, { region });
  expect((await backend.find("nightly", neverAborted))?.creationId).toBe("fedcba9876543210");
  const handOver = await parseHandOver(exported, "nightly.json");
  expect(
    (await importCluster({ ...there, signal: neverAborted }, backend, handOver)).creationId,
  ).toBe(cluster.creationId);
  // Its key is there now.
  expect((await backend.find("nightly", neverAborted))?.creationId).toBe(cluster.creationId);
});

/** Another computer of the same user. */
function elsewhere(runtime: Runtime): Runtime {
  const XDG_STATE_HOME = join(runtime.environment["HOME"]!, "other");
  return { ...runtime, environment: { ...runtime.environment, XDG_STATE_HOME } };
}

const clientOf = ({ endpoint, accessKeyId, secretAccessKey }: LocalCloud): EC2Client =>
  new EC2Client({ region, endpoint, credentials: { accessKeyId, secretAccessKey } });
