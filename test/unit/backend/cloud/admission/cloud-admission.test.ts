/** Admission while others change the same security group. */
import { expect, test } from "bun:test";
import type { IpPermission } from "@aws-sdk/client-ec2";
import { cloudAdmission } from "../../../../../src/backend/cloud/admission/cloud-admission.ts";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { groupName, toTags } from "../../../../../src/backend/cloud/records/tags.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { refusal } from "../../../../support/scripted-cloud.ts";

const never = new AbortController().signal;
const creation = { clusterId: "nightly", creationId: "0123456789abcdef" };
const cluster = { id: "nightly", creationId: creation.creationId, directory: "" };
const groupId = "sg-0123456789abcdef0";
const itself: IpPermission = { IpProtocol: "-1", UserIdGroupPairs: [{ GroupId: groupId }] };
const open = (port: number, CidrIp: string): IpPermission => ({
  IpProtocol: "tcp",
  FromPort: port,
  ToPort: port,
  IpRanges: [{ CidrIp }],
});

interface World {
  /** The rules that each look at the group sees; the last one stays. */
  readonly rules: readonly (readonly IpPermission[])[];
  /** The codes with which changes are refused, in turn; later ones succeed. */
  readonly refusals?: readonly string[];
  readonly state?: "running" | "terminated";
  readonly clusterOfMachine?: string;
  readonly groupOfMachine?: string;
}

function openAdmission(world: World) {
  const { rules, refusals = [], state = "running", clusterOfMachine = "nightly" } = world;
  const changes: { readonly action: string; readonly permissions: readonly IpPermission[] }[] = [];
  let looks = 0;
  const tags = { ...creation, clusterId: clusterOfMachine, role: "master", variant: "oss", sshUser: "admin" };
  const Instances = [
    {
      InstanceId: "i-00000001",
      State: { Name: state },
      SecurityGroups: [{ GroupId: groupId, GroupName: world.groupOfMachine ?? groupName(clusterOfMachine) }],
      Tags: toTags("x", tags, []),
    },
  ];
  const call = async (
    action: string,
    input: { readonly IpPermissions?: readonly IpPermission[] },
  ): Promise<unknown> => {
    if (action === "DescribeInstances") return { Reservations: [{ Instances }] };
    if (action === "DescribeSecurityGroups") {
      const IpPermissions = rules[Math.min(looks, rules.length - 1)];
      looks += 1;
      const GroupName = groupName("nightly");
      return { SecurityGroups: [{ GroupId: groupId, GroupName, Tags: toTags("x", creation, []), IpPermissions }] };
    }
    changes.push({ action, permissions: input.IpPermissions ?? [] });
    const code = refusals[changes.length - 1];
    if (code !== undefined) throw refusal(code);
    return { Return: true };
  };
  const admission = cloudAdmission({ region: "us-west-2", call } as unknown as CloudApi, {});
  const portsOf = ({ permissions }: (typeof changes)[number]) => permissions.map(({ FromPort }) => FromPort);
  return { admission, changes, asked: () => changes.map(portsOf) };
}

const office = "192.0.2.0/24";
const request = { range: office, openPorts: [80, 443] };
const duplicate = "InvalidPermission.Duplicate";
const missing = "InvalidPermission.NotFound";

test("if somebody else admits the range at the same time, only what is still missing is added", async () => {
  const rules = [[itself], [itself, open(22, office), open(80, "198.51.100.0/24")]];
  const { admission, asked, changes } = openAdmission({ rules, refusals: [duplicate] });
  expect(await admission.admit(cluster, request, never)).toBe(office);
  expect(asked()).toEqual([[22, 80, 443], [80]]);
  expect(changes[1]?.permissions).toEqual([open(80, office)]);
});

test("a rule that keeps being there is an error after three tries, and another refusal at once", async () => {
  const stuck = openAdmission({ rules: [[itself]], refusals: Array(9).fill(duplicate) });
  expect((await failureOf(stuck.admission.admit(cluster, request, never))).facts).toMatchObject({ code: duplicate });
  expect(stuck.changes).toHaveLength(3);
  const denied = openAdmission({ rules: [[itself]], refusals: Array(9).fill("UnauthorizedOperation") });
  expect((await failureOf(denied.admission.admit(cluster, request, never))).id).toBe("not-permitted");
  expect(denied.changes).toHaveLength(1);
});

test("nothing is requested for a range that is admitted already", async () => {
  const { admission, changes } = openAdmission({ rules: [[itself, open(22, office)]] });
  expect(await admission.admit(cluster, request, never)).toBe(office);
  expect(changes).toEqual([]);
});

const full = [itself, open(22, office), open(80, office)];

test("if somebody else removes a rule at the same time, the others are removed, or all are gone", async () => {
  const some = openAdmission({ rules: [full, [itself, open(80, office)]], refusals: [missing] });
  expect(await some.admission.remove(cluster, office, never)).toBe(office);
  expect(some.asked()).toEqual([[22, 80], [80]]);
  const none = openAdmission({ rules: [full, [itself]], refusals: [missing] });
  expect(await none.admission.remove(cluster, office, never)).toBe(office);
  expect(none.changes).toHaveLength(1);
});

test("a range whose rules are still there after three tries is not reported as removed", async () => {
  const { admission, changes } = openAdmission({ rules: [full], refusals: Array(9).fill(missing) });
  expect((await failureOf(admission.remove(cluster, office, never))).facts).toMatchObject({ code: missing });
  expect(changes).toHaveLength(3);
});

test("a removal that is refused for another reason is an error", async () => {
  const { admission, changes } = openAdmission({ rules: [full], refusals: Array(9).fill("UnauthorizedOperation") });
  expect((await failureOf(admission.remove(cluster, office, never))).id).toBe("not-permitted");
  expect(changes).toHaveLength(1);
});

test.each([
  ["nothing is", [itself], "No address is admitted to it."],
  ["others are", [...full, open(22, "198.51.100.7/32")], `These ranges are admitted: ${office}, 198.51.100.7/32`],
])("a range that is not admitted cannot be removed; the error says whether %s", async (_, rules, hint) => {
  const { admission, changes } = openAdmission({ rules: [rules] });
  const error = await failureOf(admission.remove(cluster, "203.0.113.9", never));
  expect([error.id, error.message, error.hint]).toEqual([
    "bad-usage",
    '203.0.113.9/32 is not admitted to cluster "nightly".',
    hint,
  ]);
  expect(changes).toEqual([]);
});

test.each([
  ["have ended", { state: "terminated" }],
  ["belong to another cluster", { clusterOfMachine: "weekly", groupOfMachine: groupName("nightly") }],
  ["are in another group by name", { groupOfMachine: "default" }],
] as const)("a cluster whose machines %s has no group of its own", async (_, world) => {
  const { admission } = openAdmission({ rules: [full], ...world });
  expect(await failureOf(admission.list(cluster, never))).toMatchObject({ id: "cluster-not-found" });
});

test.each([
  ["0.0.0.0/0", "0.0.0.0/0"],
  ["::/0", "::/0"],
])("everyone is admitted only by %s", async (range, expected) => {
  const { admission } = openAdmission({ rules: [full] });
  expect(await admission.admit(cluster, { ...request, range }, never)).toBe(expected);
  const error = await failureOf(admission.admit(cluster, { ...request, range: "2001:db8::1/0" }, never));
  expect([error.id, error.message]).toEqual(["bad-usage", '"2001:db8::1/0" contains every address.']);
});
