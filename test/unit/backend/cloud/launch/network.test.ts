/** Where machines are launched, and how the security group serves as a lock. */
import { expect, test } from "bun:test";
import type { SecurityGroup, Subnet } from "@aws-sdk/client-ec2";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import {
  createGroup,
  findSubnets,
  openGroup,
} from "../../../../../src/backend/cloud/launch/network.ts";
import { toTags } from "../../../../../src/backend/cloud/tags.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { refusal, scriptedCloud } from "../../../../support/scripted-cloud.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

/** An API with one answer for each request in turn; the last one stays. */
function openApi(...answers: readonly unknown[]) {
  const requests: { readonly action: string; readonly input: unknown }[] = [];
  const { runtime, elapsedMs } = scriptedCloud([], []);
  const call = async (action: string, input: unknown): Promise<unknown> => {
    requests.push({ action, input });
    const answer = answers[Math.min(requests.length, answers.length) - 1];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const api = { region: "us-west-2", now: () => runtime.clock.now(), call } as unknown as CloudApi;
  return { api, clock: runtime.clock, requests, elapsedMs };
}

const subnet = (
  SubnetId: string,
  zone: string,
  free: number | undefined,
  State: Subnet["State"] = "available",
) => ({
  SubnetId,
  VpcId: "vpc-1",
  AvailabilityZone: zone,
  State,
  ...(free !== undefined && { AvailableIpAddressCount: free }),
});

test("the emptiest subnet is tried first, equal ones by their zones, and unavailable ones never", async () => {
  const Subnets = [
    subnet("subnet-none", "d", undefined),
    subnet("subnet-few", "a", 3),
    subnet("subnet-c", "c", 90),
    subnet("subnet-b", "b", 90),
    subnet("subnet-new", "e", 500, "pending"),
  ];
  const { api, requests } = openApi({ Subnets });
  const found = await findSubnets(api, undefined, neverAborted);
  expect(found.map(({ id }) => id)).toEqual(["subnet-b", "subnet-c", "subnet-few", "subnet-none"]);
  expect(found[0]).toEqual({ id: "subnet-b", vpcId: "vpc-1", zone: "b" });
  expect(requests[0]?.input).toEqual({ Filters: [{ Name: "default-for-az", Values: ["true"] }] });
});

test("only the chosen subnet is asked for", async () => {
  const { api, requests } = openApi({ Subnets: [subnet("subnet-b", "b", 1)] });
  expect(await findSubnets(api, "subnet-b", neverAborted)).toHaveLength(1);
  expect(requests[0]?.input).toEqual({ SubnetIds: ["subnet-b"] });
});

test.each([
  [undefined, "Region us-west-2 has no default network with a subnet.", { region: "us-west-2" }],
  [
    "subnet-b",
    "Region us-west-2 has no usable subnet subnet-b.",
    { region: "us-west-2", subnet: "subnet-b" },
  ],
])("without a usable subnet, the error names %p", async (chosen, message, facts) => {
  const { api } = openApi({ Subnets: [subnet("subnet-b", "b", 1, "unavailable")] });
  const error = await failureOf(findSubnets(api, chosen, neverAborted));
  expect([error.id, error.message, error.facts]).toEqual(["no-default-network", message, facts]);
});

test.each([
  [
    undefined,
    "Region us-west-2 has no default network with a subnet: nodes have IPv4 addresses, and what is there is for IPv6 only.",
  ],
  [
    "subnet-six",
    "Region us-west-2 has no usable subnet subnet-six: nodes have IPv4 addresses, and it is for IPv6 only.",
  ],
])(
  "a subnet without IPv4 addresses is not used, also if the chosen one is %p",
  async (chosen, message) => {
    const six = { ...subnet("subnet-six", "a", 0), Ipv6Native: true };
    const { api } = openApi({ Subnets: [six, subnet("subnet-four", "b", 9)] });
    expect((await findSubnets(api, undefined, neverAborted)).map(({ id }) => id)).toEqual([
      "subnet-four",
    ]);
    const error = await failureOf(
      findSubnets(openApi({ Subnets: [six] }).api, chosen, neverAborted),
    );
    expect([error.id, error.message]).toEqual(["no-default-network", message]);
  },
);

const request = {
  clusterId: "default",
  vpcId: "vpc-1",
  tags: { clusterId: "default", creationId: "0123456789abcdef" },
};
const duplicate = refusal("InvalidGroup.Duplicate");
const expiresAt = "2026-01-01T01:00:00.000Z";
const named = (creationId: string): { readonly SecurityGroups: readonly SecurityGroup[] } => ({
  SecurityGroups: [{ GroupId: "sg-00000001", Tags: toTags("x", { creationId, expiresAt }, []) }],
});

test("a new group has its cluster's name and the creation's tags", async () => {
  const { api, clock, requests } = openApi({ GroupId: "sg-00000001" });
  expect(await createGroup(api, request, clock, neverAborted)).toBe("sg-00000001");
  expect(requests[0]?.input).toMatchObject({
    GroupName: "cluster-e2e-default",
    VpcId: "vpc-1",
    TagSpecifications: [
      { ResourceType: "security-group", Tags: toTags("cluster-e2e-default", request.tags, []) },
    ],
  });
});

test("if the name is taken by this very creation, the first answer was lost, and the group is used", async () => {
  const { api, clock, requests, elapsedMs } = openApi(
    duplicate,
    {},
    { SecurityGroups: [] },
    named("0123456789abcdef"),
  );
  expect(await createGroup(api, request, clock, neverAborted)).toBe("sg-00000001");
  expect(elapsedMs()).toBe(2000);
  expect(requests.at(-1)?.input).toEqual({
    Filters: [
      { Name: "group-name", Values: ["cluster-e2e-default"] },
      { Name: "vpc-id", Values: ["vpc-1"] },
    ],
  });
});

test.each([
  [
    "is shown",
    named("fedcba9876543210"),
    'A cluster "default" already exists or is being created in region us-west-2 (security group sg-00000001). It ends 01:00 UTC (in 1 h).',
    0,
  ],
  [
    "is never shown",
    { SecurityGroups: [] },
    'A cluster "default" already exists or is being created in region us-west-2.',
    5000,
  ],
])(
  "if another creation has the name, and its group %s, the id is taken",
  async (_, answer, message, waitedMs) => {
    const { api, clock, elapsedMs } = openApi(duplicate, answer);
    const error = await failureOf(createGroup(api, request, clock, neverAborted));
    expect([error.id, error.message]).toEqual(["cluster-exists", message]);
    expect(elapsedMs()).toBe(waitedMs);
  },
);

test("another refusal of the group keeps its own error", async () => {
  const denied = refusal("UnauthorizedOperation");
  const { api, clock } = openApi(denied, named("0123456789abcdef"));
  const error: unknown = await failureOf(createGroup(api, request, clock, neverAborted));
  expect(error).toBe(denied);
});

const rules = { groupId: "sg-00000001", cidrs: ["192.0.2.0/24"], ports: [22, 80] };

test("nodes may reach each other on every port, and the ranges only the given ports", async () => {
  const unknown = refusal("InvalidGroup.NotFound");
  const { api, clock, requests, elapsedMs } = openApi(unknown, unknown, { Return: true });
  await openGroup(api, rules, clock, neverAborted);
  expect(elapsedMs()).toBe(2000);
  const tcp = { IpProtocol: "tcp", IpRanges: [{ CidrIp: "192.0.2.0/24" }] };
  expect(requests[0]?.input).toEqual({
    GroupId: "sg-00000001",
    IpPermissions: [
      { IpProtocol: "-1", UserIdGroupPairs: [{ GroupId: "sg-00000001" }] },
      { ...tcp, FromPort: 22, ToPort: 22 },
      { ...tcp, FromPort: 80, ToPort: 80 },
    ],
  });
});

test("rules that exist were added by the same request, whose answer was lost; any other refusal is an error", async () => {
  const repeated = openApi(refusal("InvalidPermission.Duplicate"));
  await openGroup(repeated.api, rules, repeated.clock, neverAborted);
  const limit = refusal("RulesPerSecurityGroupLimitExceeded");
  const refused = openApi(limit);
  const error: unknown = await failureOf(
    openGroup(refused.api, rules, refused.clock, neverAborted),
  );
  expect(error).toBe(limit);
});
