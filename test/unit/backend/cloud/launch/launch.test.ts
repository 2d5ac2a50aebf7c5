/** What a launch requests, and what is saved for a roll-back at each moment. */
import { expect, test } from "bun:test";
import type { RunInstancesCommandInput } from "@aws-sdk/client-ec2";
import { join } from "node:path";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import {
  type LaunchLedger,
  launchRequest,
  launchRole,
} from "../../../../../src/backend/cloud/launch/launch.ts";
import { readLaunches } from "../../../../../src/backend/cloud/launch/saved-requests.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { outage, refusal, scriptedCloud } from "../../../../support/scripted-cloud.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const id = "i-0123456789abcdef0";
const creation = {
  clusterId: "default",
  creationId: "0123456789abcdef",
  expiresAt: "2026-01-01T02:00:00Z",
};
const image = {
  id: "ami-0123456789abcdef0",
  name: "debian-12",
  user: "admin",
  rootDevice: "/dev/xvda",
  furtherDevices: [],
  traits: {},
  leastGigabytes: 8,
  knowsMetadata2: true,
};
const subnets = ["a", "b"].map((zone) => ({
  id: `subnet-${zone}`,
  vpcId: "vpc-1",
  zone: `us-west-2${zone}`,
}));
const planIn = (directory: string) => ({
  clusterId: "default",
  directory,
  instanceType: "m5.large",
  image,
  subnets,
  groupId: "sg-00000001",
  userDataOf: (role: string) => `#cloud-config for ${role}`,
  tags: { ...creation, counts: "master=1 agent=2 public_agent=0" },
  customTags: [{ key: "owner", value: "me" }],
});

/** Launches two agents. Each failure is the API's answer to one request; after them, requests succeed. */
async function launch(failures: readonly (Error | undefined)[], signal = neverAborted) {
  await using folder = await scratchFolder();
  const directory = join(folder.path, "default-0123456789abcdef");
  const ledger: LaunchLedger = new Map();
  const requests: RunInstancesCommandInput[] = [];
  const known: unknown[] = [];
  const { runtime, elapsedMs } = scriptedCloud([], []);
  const call = async (_: string, request: RunInstancesCommandInput): Promise<unknown> => {
    requests.push(request);
    const saved = await readLaunches(directory);
    known.push([saved.launches.map(outcomeOf), [...ledger.values()].map(outcomeOf)]);
    const failed = failures[requests.length - 1];
    if (failed !== undefined) throw failed;
    return { Instances: [{ InstanceId: id }] };
  };
  const api = { region: "us-west-2", call } as unknown as CloudApi;
  const job = { plan: planIn(directory), role: "agent", count: 2, ledger } as const;
  const outcome = await launchRole(api, job, runtime.clock, signal).catch(
    (error: unknown) => error,
  );
  const saved = (await readLaunches(directory)).launches.map(outcomeOf);
  return {
    outcome,
    requests,
    known,
    saved,
    ledger: [...ledger.values()].map(outcomeOf),
    elapsedMs,
  };
}

const outcomeOf = ({
  name,
  machineIds,
}: {
  readonly name: string;
  readonly machineIds: readonly string[] | undefined;
}) => `${name}: ${machineIds === undefined ? "unknown" : machineIds.join() || "none"}`;

test("a request is on disk and in the ledger before it is sent, and so is its outcome afterwards", async () => {
  const { outcome, known, saved, ledger } = await launch([]);
  expect(outcome).toBeUndefined();
  expect(known).toEqual([[["agent-0: unknown"], ["agent-0: unknown"]]]);
  expect([saved, ledger]).toEqual([[`agent-0: ${id}`], [`agent-0: ${id}`]]);
});

test("after an interrupt, nothing is requested", async () => {
  const reason = new Error("interrupted");
  const { outcome, requests, ledger } = await launch([], AbortSignal.abort(reason));
  expect(outcome).toBe(reason);
  expect([requests, ledger]).toEqual([[], []]);
});

test.each([
  ["refused", () => refusal("InvalidParameterValue"), "none"],
  ["not answered", outage, "unknown"],
  // An earlier try may have been accepted before they expired.
  ["refused because of its credentials", () => refusal("RequestExpired"), "unknown"],
])("a launch that is %s is kept for the roll-back with its outcome", async (_, failure, known) => {
  const { outcome, saved, ledger, requests } = await launch([failure()]);
  expect(outcome).toBeInstanceOf(Error);
  expect([saved, ledger]).toEqual([[`agent-0: ${known}`], [`agent-0: ${known}`]]);
  expect(requests).toHaveLength(1);
});

test("a group that the API does not know yet is waited for, with the same request", async () => {
  const unknown = refusal("InvalidGroup.NotFound");
  const { requests, ledger, elapsedMs } = await launch([unknown, unknown]);
  expect(ledger).toEqual([`agent-0: ${id}`]);
  expect(new Set(requests.map(({ ClientToken }) => ClientToken)).size).toBe(1);
  expect(elapsedMs()).toBe(2000);
});

const inZone =
  "Your requested instance type is not supported in your requested Availability Zone (us-west-2a)";

test("a kind of machine that no zone has is refused once, and is no lack of capacity", async () => {
  const reason = "The instance type does not support instance store volumes of this kind";
  const { outcome, requests, saved } = await launch([refusal("Unsupported", reason)]);
  expect(outcome).toMatchObject({
    id: "cloud-failed",
    hint: expect.stringContaining("No other zone helps"),
  });
  expect([requests.length, saved]).toEqual([1, ["agent-0: none"]]);
});

test.each([
  "InsufficientInstanceCapacity",
  "InsufficientVolumeCapacity",
  "Unsupported",
  "InsufficientFreeAddressesInSubnet",
])("after %s the next zone is tried, with a request of its own", async (code) => {
  const { outcome, requests, saved } = await launch([refusal(code, inZone)]);
  expect(outcome).toBeUndefined();
  expect(requests.map(({ NetworkInterfaces }) => NetworkInterfaces?.[0]?.SubnetId)).toEqual([
    "subnet-a",
    "subnet-b",
  ]);
  expect(requests[1]?.ClientToken).not.toBe(requests[0]?.ClientToken);
  expect(saved.toSorted()).toEqual(["agent-0: none", `agent-1: ${id}`]);
});

test("without room in any zone, the error names each zone with its reason", async () => {
  const last = refusal("Unsupported", inZone);
  const { outcome } = await launch([refusal("InsufficientInstanceCapacity"), last]);
  expect(outcome).toMatchObject({
    id: "capacity-lacking",
    message:
      "No zone of region us-west-2 currently has capacity for 2 × m5.large for agent (tried us-west-2a: InsufficientInstanceCapacity; us-west-2b: Unsupported).",
    facts: { zones: ["us-west-2a", "us-west-2b"], count: 2, code: "Unsupported" },
    cause: last,
  });
});

test("the account's limit ends the launch, and the error names all machines that were requested", async () => {
  const { outcome, requests } = await launch([refusal("VcpuLimitExceeded")]);
  expect(requests).toHaveLength(1);
  expect(outcome).toMatchObject({
    id: "capacity-lacking",
    message: expect.stringContaining(
      " Requested: 3 × m5.large (1 master, 2 agents, 0 public agents).",
    ),
    hint: "Request fewer machines or a smaller `instanceType`, or have the limit raised.",
    facts: { total: 3, count: 2, role: "agent" },
  });
});

test("another refusal keeps its own error", async () => {
  const denied = refusal("UnauthorizedOperation");
  expect((await launch([denied])).outcome).toBe(denied);
});

test("a machine terminates when it powers off, with its encrypted volume, and protects its metadata", () => {
  const request = launchRequest(planIn(""), { role: "agent", count: 2, subnet: subnets[0]! });
  const tags = {
    Tags: expect.arrayContaining([
      { Key: "owner", Value: "me" },
      { Key: "Name", Value: "default agent" },
    ]),
  };
  expect(request).toMatchObject({
    MinCount: 2,
    MaxCount: 2,
    UserData: Buffer.from("#cloud-config for agent").toString("base64"),
    InstanceInitiatedShutdownBehavior: "terminate",
    MetadataOptions: {
      HttpTokens: "required",
      HttpPutResponseHopLimit: 1,
      HttpEndpoint: "enabled",
    },
    NetworkInterfaces: [
      {
        DeviceIndex: 0,
        Groups: ["sg-00000001"],
        AssociatePublicIpAddress: true,
        DeleteOnTermination: true,
      },
    ],
    BlockDeviceMappings: [
      {
        DeviceName: "/dev/xvda",
        Ebs: { VolumeSize: 60, Encrypted: true, DeleteOnTermination: true },
      },
    ],
    TagSpecifications: [
      { ResourceType: "instance", ...tags },
      { ResourceType: "volume", ...tags },
    ],
  });
});

test("an image with a large volume, or one that needs version 1 of the metadata, gets it", () => {
  const plan = { ...planIn(""), image: { ...image, leastGigabytes: 100, knowsMetadata2: false } };
  const request = launchRequest(plan, { role: "master", count: 1, subnet: subnets[0]! });
  expect(request.BlockDeviceMappings?.[0]?.Ebs?.VolumeSize).toBe(100);
  expect(request.MetadataOptions?.HttpTokens).toBe("optional");
});

test.each([
  ["its cluster and role", [], "default agent"],
  ["the user's tag for that, and no other", [{ key: "Name", value: "mine" }], "mine"],
])("a machine's name in the console is %s", (_, customTags, name) => {
  const part = { role: "agent", count: 1, subnet: subnets[0]! } as const;
  const [specification] =
    launchRequest({ ...planIn("/"), customTags }, part).TagSpecifications ?? [];
  expect(
    specification?.Tags?.filter(({ Key }) => Key === "Name").map(({ Value }) => Value),
  ).toEqual([name]);
});
