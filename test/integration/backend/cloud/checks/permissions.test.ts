/** doctor's checks of permissions, with the real SDK on a local cloud. */
import { expect, test } from "bun:test";
import { shareDoctorFixture, untriedPermissions } from "./checks-fixture.ts";

const fixture = shareDoctorFixture();

test("the dry runs have the same parameters as the requests of create", async () => {
  await fixture().diagnose({});
  const launch = fixture().cloud.requests.entries.find(({ action }) => action === "RunInstances");
  expect(launch?.parameters).toMatchObject({
    InstanceType: "m5.large",
    MinCount: "1",
    MaxCount: "1",
    // It isn't known whether CentOS 7 works with only version 2.
    "MetadataOptions.HttpTokens": "optional",
    "BlockDeviceMapping.1.Ebs.Encrypted": "true",
    "NetworkInterface.1.AssociatePublicIpAddress": "true",
    "TagSpecification.2.ResourceType": "volume",
  });
});

test.each([
  ["DescribeInstances", "fail", ["leftovers"]],
  ["DescribeSecurityGroups", "fail", ["account", "ec2:RunInstances", "leftovers"]],
  ["DescribeImages", "fail", ["ec2:RunInstances", "image"]],
  ["DescribeSubnets", "fail", ["ec2:CreateSecurityGroup", "ec2:RunInstances", "network"]],
  ["DescribeRegions", "warn", []],
  ["DescribeInstanceTypes", "warn", []],
  ["DescribeInstanceTypeOfferings", "warn", ["ec2:RunInstances", "instance type"]],
  ["CreateSecurityGroup", "fail", []],
  ["RunInstances", "fail", []],
] as const)(
  "%s not allowed: that check ends with %s, and names it",
  async (action, status, skipped) => {
    fixture().cloud.behaviour.change({ deniedActions: [action] });
    const diagnosis = await fixture().diagnose({});
    const text = new RegExp(`^${status}: .*may not call ec2:${action}.* → Allow ec2:${action}`);
    expect(diagnosis.told(`ec2:${action}`)).toMatch(text);
    expect(diagnosis.names("fail")).toEqual(status === "fail" ? [`ec2:${action}`] : []);
    expect(diagnosis.names("skip").toSorted()).toEqual(
      [...untriedPermissions, ...skipped].toSorted(),
    );
  },
);

test("without any permission, the check of credentials still passes", async () => {
  const deniedActions = [
    "DescribeInstances",
    "DescribeSecurityGroups",
    "DescribeImages",
    "DescribeSubnets",
    "DescribeRegions",
    "DescribeInstanceTypes",
    "DescribeInstanceTypeOfferings",
    "CreateSecurityGroup",
    "RunInstances",
  ];
  fixture().cloud.behaviour.change({ deniedActions });
  const diagnosis = await fixture().diagnose({});
  expect(diagnosis.told("credentials")).toStartWith("pass: ");
  expect(diagnosis.told("region")).toStartWith("pass: ");
  const lacking = "skip: Not checked: this needs the permission ec2:DescribeInstanceTypeOfferings.";
  expect(diagnosis.told("instance type")).toBe(lacking);
});

test("an account at its limit has the permission to launch, but no capacity", async () => {
  fixture().cloud.behaviour.change({ vcpuLimit: 1 });
  const diagnosis = await fixture().diagnose({});
  expect(diagnosis.told("ec2:RunInstances")).toMatch(
    /^warn: .*VcpuLimitExceeded.* → .*fewer machines/,
  );
});

test("an endpoint that executes dry runs isn't EC2", async () => {
  const { cloud } = fixture();
  // The local cloud supports dry runs, so this is the answer of a cloud that doesn't.
  const body = "<CreateSecurityGroupResponse><groupId>sg-1</groupId></CreateSecurityGroupResponse>";
  cloud.faults.add({
    action: "CreateSecurityGroup",
    when: "before",
    times: "always",
    raw: { status: 200, body },
  });
  const diagnosis = await fixture().diagnose({});
  expect(diagnosis.told("ec2:CreateSecurityGroup")).toMatch(
    /^fail: .*dry run.* → .*AWS_ENDPOINT_URL_EC2/,
  );
});
