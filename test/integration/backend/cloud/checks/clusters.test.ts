/** doctor's checks of existing clusters, and of the remains of ended ones. */

import type { Tag } from "@aws-sdk/client-ec2";
import { beforeAll, expect, test } from "bun:test";
import { type CloudApi, describeInstances } from "../../../../../src/backend/cloud/api/api.ts";
import { openApi } from "../../../../../src/backend/cloud/api/open-api.ts";
import { toTags } from "../../../../../src/backend/cloud/tags.ts";
import { creationDirectory, creationFiles } from "../../../../../src/store/creation-folder.ts";
import {
  makePrivateFolder,
  writePrivateFile,
} from "../../../../../src/system/files/private-file.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { until } from "../../../../support/until.ts";
import { shareDoctorFixture } from "./checks-fixture.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const region = "us-west-2";
const fixture = shareDoctorFixture();
const state: { api?: CloudApi } = {};
const api = (): CloudApi => state.api!;

beforeAll(async () => {
  const environment = { ...fixture().cloud.environment, HOME: fixture().folder };
  const runtime = { environment, clock: systemClock, progress: silentProgress };
  state.api = (await openApi({ ...runtime, signal: neverAborted }, region))(region);
});

interface MadeCluster {
  readonly clusterId: string;
  readonly expiresInMs: number;
  /** The range that may log in. */
  readonly admitted: string;
}

const creationOf = (clusterId: string): string => Buffer.from(clusterId.padEnd(8)).toString("hex");

function tagged(
  ResourceType: "instance" | "security-group",
  { clusterId, expiresInMs }: MadeCluster,
) {
  const expiresAt = new Date(Date.now() + expiresInMs).toISOString();
  const values = {
    clusterId,
    creationId: creationOf(clusterId),
    expiresAt,
    role: "master",
    variant: "oss",
    sshUser: "admin",
  };
  const Tags: Tag[] = toTags(clusterId, values, []);
  return [{ ResourceType, Tags }];
}

/** The security group of a cluster, as create makes it. */
async function makeGroup(cluster: MadeCluster): Promise<string> {
  const TagSpecifications = tagged("security-group", cluster);
  const request = {
    GroupName: `cluster-e2e-${cluster.clusterId}`,
    Description: "test",
    TagSpecifications,
  };
  const { GroupId = "" } = await api().call("CreateSecurityGroup", request, neverAborted);
  const IpPermissions = [
    { IpProtocol: "tcp", FromPort: 22, ToPort: 22, IpRanges: [{ CidrIp: cluster.admitted }] },
  ];
  await api().call("AuthorizeSecurityGroupIngress", { GroupId, IpPermissions }, neverAborted);
  return GroupId;
}

async function makeMachine(cluster: MadeCluster, groupId: string): Promise<string> {
  const { Images = [] } = await api().call(
    "DescribeImages",
    { IncludeDeprecated: true },
    neverAborted,
  );
  const image = Images.find(({ Name = "" }) => Name.startsWith("debian-12-amd64"))!;
  const request = {
    ImageId: image.ImageId,
    InstanceType: "m5.large" as const,
    MinCount: 1,
    MaxCount: 1,
    SecurityGroupIds: [groupId],
    TagSpecifications: tagged("instance", cluster),
  };
  const { Instances = [] } = await api().call("RunInstances", request, neverAborted);
  const id = Instances[0]!.InstanceId!;
  await until("its id and its tags are seen", async () => {
    const seen = await describeInstances(
      api(),
      { creationId: creationOf(cluster.clusterId) },
      neverAborted,
    );
    return seen.some(({ InstanceId }) => InstanceId === id);
  });
  return id;
}

async function saveKey(clusterId: string): Promise<void> {
  const root = `${fixture().folder}/state/cluster-e2e/cloud/${region}`;
  const directory = creationDirectory(root, clusterId, creationOf(clusterId));
  await makePrivateFolder(directory);
  await writePrivateFile(creationFiles(directory).privateKey, "a key\n");
}

test("remains of ended clusters are listed, with the command that removes them", async () => {
  const everybody = { admitted: "0.0.0.0/0" };
  const old = await makeGroup({ ...everybody, clusterId: "old", expiresInMs: -60_000 });
  const lateCluster = { ...everybody, clusterId: "late", expiresInMs: -60_000 };
  const late = await makeGroup(lateCluster);
  const lateMachine = await makeMachine(lateCluster, late);
  const presentCluster = { ...everybody, clusterId: "present", expiresInMs: 4 * 3_600_000 };
  const present = await makeGroup(presentCluster);
  await makeMachine(presentCluster, present);
  // The tag alone does not make a machine expired.
  fixture().cloud.clock.skew(2 * 3_600_000 + 60_000);
  const text = (await fixture().diagnose({})).told("leftovers");
  expect(text).toStartWith(
    `warn: Expired clusters have left machine ${lateMachine} (cluster late, which ended `,
  );
  expect(text).toContain(`security group ${old} (cluster old, which ended `);
  expect(text).toEndWith(
    "The next create in this region removes them: cluster-cloud create --cloud-region us-west-2 …",
  );
  // One is used by the machine that is to be removed, the other by a running cluster.
  expect(text).not.toContain(late);
  expect(text).not.toContain(present);
});

test("clusters created here that no longer admit this computer are listed", async () => {
  const groups: Record<string, string> = {};
  for (const [clusterId, admitted] of [
    ["moved", "203.0.113.0/24"],
    ["well", "127.0.0.0/8"],
    ["theirs", "203.0.113.0/24"],
  ] as const) {
    const cluster = { clusterId, admitted, expiresInMs: 60_000 };
    groups[clusterId] = await makeGroup(cluster);
    await makeMachine(cluster, groups[clusterId]);
  }
  await saveKey("moved");
  await saveKey("well");
  expect((await fixture().diagnose({})).told("admin address")).toBe(
    `warn: This computer's public address is 127.0.0.1, which is not allowed to reach cluster moved (security group ${groups["moved"]}: 203.0.113.0/24).` +
      " → Allow it: cluster-cloud admit --cloud-region us-west-2 -c moved",
  );
});

test("clusters created here that admit this computer pass", async () => {
  const cluster = { clusterId: "well", admitted: "127.0.0.0/8", expiresInMs: 60_000 };
  await makeMachine(cluster, await makeGroup(cluster));
  await saveKey("well");
  expect((await fixture().diagnose({})).told("admin address")).toBe(
    "pass: This computer's public address is 127.0.0.1, and the clusters created here allow it",
  );
});
