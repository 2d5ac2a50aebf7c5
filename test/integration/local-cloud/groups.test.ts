/** Security groups of the local cloud: names are unique, rules are checked, and a group in use can't be deleted. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroupCommand,
  type CreateSecurityGroupCommandInput,
  CreateTagsCommand,
  DeleteSecurityGroupCommand,
  DescribeSecurityGroupsCommand,
  DescribeVpcsCommand,
  type EC2Client,
  type IpPermission,
  RevokeSecurityGroupIngressCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
} from "@aws-sdk/client-ec2";
import {
  clientOf,
  codeOf,
  debianImage,
  eventually,
  launchOf,
  startCloud,
} from "../../local-cloud/support/sdk.ts";

const opened: { current?: Awaited<ReturnType<typeof startCloud>> } = {};
const client = (): EC2Client => opened.current!.client;
const cloud = () => opened.current!.cloud;

beforeAll(async () => {
  opened.current = await startCloud({
    behaviour: { shuttingDownMs: 300, instancesVisibleAfterMs: 0, pendingMs: 10 },
  });
});

afterAll(async () => opened.current?.[Symbol.asyncDispose]());

async function createGroup(
  GroupName: string,
  changes: Partial<CreateSecurityGroupCommandInput>,
): Promise<string> {
  const command = new CreateSecurityGroupCommand({
    GroupName,
    Description: "for a test",
    ...changes,
  });
  return (await client().send(command)).GroupId!;
}

const authorize = async (GroupId: string, ...IpPermissions: IpPermission[]) =>
  client().send(new AuthorizeSecurityGroupIngressCommand({ GroupId, IpPermissions }));

const ssh = (CidrIp: string): IpPermission => ({
  IpProtocol: "tcp",
  FromPort: 22,
  ToPort: 22,
  IpRanges: [{ CidrIp }],
});

test("a name can exist only once in a VPC", async () => {
  const id = await createGroup("lock", {});
  expect(await codeOf(createGroup("lock", {}))).toBe("InvalidGroup.Duplicate");
  const { Vpcs } = await client().send(
    new DescribeVpcsCommand({ Filters: [{ Name: "is-default", Values: ["false"] }] }),
  );
  expect(await codeOf(createGroup("lock", { VpcId: Vpcs![0]!.VpcId }))).toBe("ok");
  await client().send(new DeleteSecurityGroupCommand({ GroupId: id }));
  expect(await codeOf(createGroup("lock", {}))).toBe("ok");
});

test("of two concurrent requests, one creates the group", async () => {
  const codes = await Promise.all([
    codeOf(createGroup("race", {})),
    codeOf(createGroup("race", {})),
  ]);
  expect(codes.toSorted()).toEqual(["InvalidGroup.Duplicate", "ok"]);
});

test("tags of the call and later ones are found and returned, with owner and rules", async () => {
  const Tags = [{ Key: "cluster-e2e:cluster-id", Value: "x" }];
  const id = await createGroup("tagged", {
    TagSpecifications: [{ ResourceType: "security-group", Tags }],
  });
  await authorize(id, ssh("10.1.2.0/24"), {
    IpProtocol: "-1",
    UserIdGroupPairs: [{ GroupId: id }],
  });
  await client().send(
    new CreateTagsCommand({ Resources: [id], Tags: [{ Key: "late", Value: "yes" }] }),
  );
  const Filters = [{ Name: "tag:cluster-e2e:cluster-id", Values: ["x"] }];
  const { SecurityGroups } = await client().send(new DescribeSecurityGroupsCommand({ Filters }));
  expect(SecurityGroups).toHaveLength(1);
  expect(SecurityGroups![0]).toMatchObject({
    GroupId: id,
    GroupName: "tagged",
    OwnerId: "111122223333",
    Tags: [...Tags, { Key: "late", Value: "yes" }],
    IpPermissions: [
      { IpProtocol: "tcp", FromPort: 22, ToPort: 22, IpRanges: [{ CidrIp: "10.1.2.0/24" }] },
      { IpProtocol: "-1", UserIdGroupPairs: [{ GroupId: id, UserId: "111122223333" }] },
    ],
  });
});

test.each<[string, IpPermission, string]>([
  ["an address without a prefix", ssh("10.0.0.1"), "InvalidParameterValue"],
  ["an address that isn't one", ssh("10.0.0.256/32"), "InvalidParameterValue"],
  ["a prefix that is too long", ssh("10.0.0.0/33"), "InvalidParameterValue"],
  ["no source", { IpProtocol: "tcp", FromPort: 22, ToPort: 22 }, "InvalidParameterValue"],
  ["no port", { IpProtocol: "tcp", IpRanges: [{ CidrIp: "10.0.0.0/8" }] }, "InvalidParameterValue"],
  [
    "an unknown group",
    { IpProtocol: "-1", UserIdGroupPairs: [{ GroupId: "sg-0" }] },
    "InvalidGroup.NotFound",
  ],
  [
    "an IPv6 source",
    { IpProtocol: "tcp", FromPort: 22, ToPort: 22, Ipv6Ranges: [{ CidrIpv6: "2001:db8::/32" }] },
    "ok",
  ],
])("a rule with %s is answered with %s", async (what, permission, code) => {
  expect(await codeOf(authorize(await createGroup(what.replace("'", ""), {}), permission))).toBe(
    code,
  );
});

test("a duplicate rule is rejected", async () => {
  const id = await createGroup("twice", {});
  await authorize(id, ssh("10.0.0.0/8"));
  expect(await codeOf(authorize(id, ssh("10.0.0.0/8")))).toBe("InvalidPermission.Duplicate");
});

test("all rules of a request are revoked or none, whatever their descriptions", async () => {
  const id = await createGroup("revoked", {});
  const described = {
    ...ssh("10.0.0.0/8"),
    IpRanges: [{ CidrIp: "10.0.0.0/8", Description: "the office" }],
  };
  await authorize(id, described, ssh("10.1.0.0/16"));
  const revoke = async (...IpPermissions: IpPermission[]) =>
    codeOf(client().send(new RevokeSecurityGroupIngressCommand({ GroupId: id, IpPermissions })));
  const rules = () =>
    cloud()
      .groups()
      .find(({ groupId }) => groupId === id)!.rules;
  expect(await revoke(ssh("10.0.0.0/8"), ssh("10.2.0.0/16"))).toBe("InvalidPermission.NotFound");
  expect(rules()).toHaveLength(2);
  expect(await revoke(ssh("10.0.0.0/8"))).toBe("ok");
  expect(rules()).toMatchObject([{ source: { cidr: "10.1.0.0/16" } }]);
});

test("a group can't be deleted while an instance uses it, even one that is shutting down", async () => {
  const id = await createGroup("used", {});
  const remove = async () => codeOf(client().send(new DeleteSecurityGroupCommand({ GroupId: id })));
  const launch = launchOf(await debianImage(client()), { SecurityGroupIds: [id] });
  const { Instances } = await client().send(new RunInstancesCommand(launch));
  expect(await remove()).toBe("DependencyViolation");
  await client().send(new TerminateInstancesCommand({ InstanceIds: [Instances![0]!.InstanceId!] }));
  expect(cloud().instances()[0]!.state).toBe("shutting-down");
  expect(await remove()).toBe("DependencyViolation");
  expect(await eventually(remove, (code) => code === "ok")).toBe("ok");
  expect(await remove()).toBe("InvalidGroup.NotFound");
});

test("a new group's id may be unknown for a while, but its name never is", async () => {
  cloud().behaviour.change({ groupsVisibleAfterMs: 1_500 });
  const id = await createGroup("slow", {});
  cloud().behaviour.change({ groupsVisibleAfterMs: 0 });
  expect(await codeOf(authorize(id, ssh("10.0.0.0/8")))).toBe("InvalidGroup.NotFound");
  expect(await codeOf(createGroup("slow", {}))).toBe("InvalidGroup.Duplicate");
  expect(
    await eventually(
      async () => codeOf(authorize(id, ssh("10.0.0.0/8"))),
      (code) => code === "ok",
    ),
  ).toBe("ok");
});

test("in a region without a default VPC, the error asks for one", async () => {
  const elsewhere = clientOf(cloud(), { region: "sa-east-1" });
  const command = new CreateSecurityGroupCommand({ GroupName: "none", Description: "none" });
  expect(await codeOf(elsewhere.send(command))).toBe("VPCIdNotSpecified");
});
