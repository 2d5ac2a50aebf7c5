import type {
  AuthorizeSecurityGroupIngressRequest,
  Instance,
  IpPermission,
  SecurityGroup,
} from "@aws-sdk/client-ec2";
import { expect, test } from "bun:test";
import { cloudAdmission } from "../../../../src/backend/cloud/admission.ts";
import type { CloudApi } from "../../../../src/backend/cloud/api/api.ts";
import { toTags } from "../../../../src/backend/cloud/tags.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const creationId = "0123456789abcdef";
const ownId = "sg-0123456789abcdef0";
const tagsOf = (clusterId: string) =>
  toTags(
    clusterId,
    { clusterId, creationId, role: "master", variant: "oss", sshUser: "admin" },
    [],
  );

const machine: Instance = {
  InstanceId: "i-0123456789abcdef0",
  State: { Name: "running" },
  SecurityGroups: [{ GroupId: ownId, GroupName: "cluster-e2e-own" }],
  Tags: tagsOf("own"),
};
const ssh = (range: string): IpPermission => ({
  IpProtocol: "tcp",
  FromPort: 22,
  ToPort: 22,
  IpRanges: [{ CidrIp: range }],
});
const group: SecurityGroup = {
  GroupId: ownId,
  GroupName: "cluster-e2e-own",
  IpPermissions: [
    { IpProtocol: "-1", UserIdGroupPairs: [{ GroupId: ownId }] },
    ssh("192.0.2.0/24"),
  ],
  Tags: tagsOf("own"),
};

interface Account {
  readonly instances?: readonly Instance[];
  readonly groups?: readonly SecurityGroup[];
  /** The codes with which the API refuses the first changes, in turn. */
  readonly refusals?: readonly string[];
}

/** The admission of the cluster `own`, and the groups and rules that the API was asked to change. */
function openAdmission({ instances = [machine], groups = [group], refusals = [] }: Account) {
  const left = [...refusals];
  const changed: (string | undefined)[] = [];
  const rules: (readonly IpPermission[])[] = [];
  const call = async (
    action: string,
    input: AuthorizeSecurityGroupIngressRequest,
  ): Promise<object> => {
    if (action === "DescribeInstances")
      return Promise.resolve({ Reservations: [{ Instances: instances }] });
    if (action === "DescribeSecurityGroups") return Promise.resolve({ SecurityGroups: groups });
    changed.push(input.GroupId);
    rules.push(input.IpPermissions ?? []);
    const code = left.shift();
    if (code !== undefined)
      throw new ClusterError("cloud-failed", `${action} failed.`, { facts: { code } });
    return {};
  };
  const admission = cloudAdmission({ region: "us-west-2", call } as unknown as CloudApi, {
    environment: {},
    progress: silentProgress,
  });
  const cluster = { id: "own", creationId, directory: "/nowhere" };
  return {
    changed,
    rules,
    admit: async (range = "198.51.100.7") =>
      admission.admit(cluster, { range, openPorts: [80] }, neverAborted),
    remove: async (range: string) => admission.remove(cluster, range, neverAborted),
  };
}

const [self, office] = group.IpPermissions!;
const port80 = { ...office!, FromPort: 80, ToPort: 80 };
test.each([
  ["no range is admitted", [self!], [22, 80]],
  ["other ranges reach one port", [self!, office!], [22]],
  ["other ranges reach two ports", [self!, office!, port80], [22, 80]],
  ["it reaches one of two ports", [self!, office!, port80, ssh("198.51.100.7/32")], [80]],
  ["it reaches all ports", [self!, office!, ssh("198.51.100.7/32")], undefined],
])("if %s, a range is admitted to the ports that it lacks", async (_, IpPermissions, ports) => {
  const opened = openAdmission({ groups: [{ ...group, IpPermissions }] });
  expect(await opened.admit()).toBe("198.51.100.7/32");
  const ruleOf = (port: number) => ({ ...ssh("198.51.100.7/32"), FromPort: port, ToPort: port });
  expect(opened.rules).toEqual(ports === undefined ? [] : [ports.map(ruleOf)]);
});

test("0.0.0.0/0 admits everyone", async () => {
  expect(await openAdmission({}).admit("0.0.0.0/0")).toBe("0.0.0.0/0");
});

test.each(["2001:db8::/32", "::/0"])(
  "%p is refused, since nodes have IPv4 only, but can be removed",
  async (range) => {
    const message = `"${range}" is an IPv6 range, but nodes have IPv4 addresses only.`;
    expect(await failureOf(openAdmission({}).admit(range))).toMatchObject({
      id: "bad-usage",
      message,
    });
    const removal = await failureOf(openAdmission({}).remove(range));
    expect(removal.message).toStartWith(`${range} is not admitted to cluster`);
  },
);

test.each([
  [
    "192.0.2.7/0",
    '"192.0.2.7/0" contains every address: pass a longer prefix, such as /32 for one address, or 0.0.0.0/0 to admit everyone.',
  ],
  ["here", '"here" is not an address range such as 192.0.2.0/24.'],
])("%p is refused before any request", async (range, message) => {
  const opened = openAdmission({});
  const failures = [await failureOf(opened.admit(range)), await failureOf(opened.remove(range))];
  for (const failure of failures) expect(failure).toMatchObject({ id: "bad-usage", message });
  expect(opened.changed).toEqual([]);
});

const duplicate = "InvalidPermission.Duplicate";
const missing = "InvalidPermission.NotFound";

test("a range that somebody else admits meanwhile is admitted at the third attempt, and not tried a fourth time", async () => {
  const second = openAdmission({ refusals: [duplicate, duplicate] });
  expect([await second.admit(), second.changed.length]).toEqual(["198.51.100.7/32", 3]);
  const third = openAdmission({ refusals: [duplicate, duplicate, duplicate] });
  expect((await failureOf(third.admit())).message).toBe("AuthorizeSecurityGroupIngress failed.");
  expect(third.changed).toHaveLength(3);
});

test("a range of which somebody else removes rules meanwhile is removed at the third attempt", async () => {
  const opened = openAdmission({ refusals: [missing, missing] });
  expect([await opened.remove("192.0.2.0/24"), opened.changed.length]).toEqual(["192.0.2.0/24", 3]);
});

test("a range whose rules are still there after the third attempt is not reported as removed", async () => {
  const opened = openAdmission({ refusals: [missing, missing, missing] });
  expect((await failureOf(opened.remove("192.0.2.0/24"))).message).toBe(
    "RevokeSecurityGroupIngress failed.",
  );
  expect(opened.changed).toHaveLength(3);
});

test("a removal that fails for another reason is an error, because the range is still admitted", async () => {
  const opened = openAdmission({ refusals: ["UnauthorizedOperation"] });
  expect((await failureOf(opened.remove("192.0.2.0/24"))).message).toBe(
    "RevokeSecurityGroupIngress failed.",
  );
});

test.each([
  [group, "These ranges are admitted: 192.0.2.0/24", ["192.0.2.0/24"]],
  [
    { ...group, IpPermissions: group.IpPermissions!.slice(0, 1) },
    "No address is admitted to it.",
    [],
  ],
])(
  "to remove a range that is not admitted is an error with those that are: %#",
  async (found, hint, ranges) => {
    expect(
      await failureOf(openAdmission({ groups: [found] }).remove("198.51.100.7")),
    ).toMatchObject({
      id: "bad-usage",
      message: '198.51.100.7/32 is not admitted to cluster "own".',
      hint,
      facts: { cluster: "own", ranges },
    });
  },
);

const otherId = "sg-0000000000000000f";

test("of several groups with the creation's tags, only the one with the cluster's name and id is changed", async () => {
  const renamed = { ...group, GroupId: otherId, GroupName: "production" };
  const foreign = { ...group, GroupName: "cluster-e2e-other", Tags: tagsOf("other") };
  const opened = openAdmission({ groups: [renamed, foreign, group] });
  await opened.admit();
  expect(opened.changed).toEqual([ownId]);
});

const copiedGroup = { ...group, GroupId: otherId };
const inCopy = { SecurityGroups: [{ GroupId: otherId, GroupName: "cluster-e2e-own" }] };
const impostor = {
  ...machine,
  InstanceId: "i-00000000000000bad",
  ...inCopy,
  LaunchTime: new Date(0),
};
test.each<[string, Account]>([
  ["alone has the cluster's tags", { groups: [copiedGroup] }],
  ["has the cluster's name and tags", { groups: [copiedGroup, group] }],
  [
    "an older machine uses that says it is the same node",
    { groups: [copiedGroup], instances: [impostor, machine] },
  ],
  [
    "is left after the tags of the cluster's machines were removed",
    { groups: [copiedGroup, group], instances: [impostor] },
  ],
])("if a second group %s, neither is changed, and both are named", async (_, account) => {
  const opened = openAdmission(account);
  const failure = await failureOf(opened.admit());
  expect(failure).toMatchObject({ id: "cloud-failed", facts: { cluster: "own" } });
  expect(failure.message).toContain(`${otherId}, ${ownId}`);
  expect(opened.changed).toEqual([]);
});

test.each<[string, Account]>([
  [
    "has only a machine that has ended",
    { instances: [{ ...machine, State: { Name: "terminated" } }] },
  ],
  ["has only another cluster's machine", { instances: [{ ...machine, Tags: tagsOf("other") }] }],
  [
    "has only a machine in a group of another name",
    { instances: [{ ...machine, SecurityGroups: [{ GroupId: ownId, GroupName: "default" }] }] },
  ],
])("a group that %s isn't the cluster's own, and isn't changed", async (_, account) => {
  const opened = openAdmission(account);
  expect((await failureOf(opened.admit())).id).toBe("cluster-not-found");
  expect(opened.changed).toEqual([]);
});

test("a group that its creation is still setting up is not changed, and another try may succeed", async () => {
  const opened = openAdmission({ groups: [{ ...group, IpPermissions: [office!] }] });
  expect(await failureOf(opened.admit())).toMatchObject({ id: "cloud-failed", transient: true });
  expect(opened.changed).toEqual([]);
});
