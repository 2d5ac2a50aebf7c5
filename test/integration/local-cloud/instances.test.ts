/** The local cloud's instances, with the real SDK. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  type EC2Client,
  DescribeInstancesCommand,
  DescribeSubnetsCommand,
  GetConsoleOutputCommand,
  type Instance,
  paginateDescribeInstances,
  RunInstancesCommand,
  type RunInstancesCommandInput,
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
const images: { debian?: string } = {};
const client = (): EC2Client => opened.current!.client;
const cloud = () => opened.current!.cloud;

beforeAll(async () => {
  opened.current = await startCloud({ behaviour: { shuttingDownMs: 50 } });
  images.debian = await debianImage(client());
});

afterAll(async () => opened.current?.[Symbol.asyncDispose]());

const run = async (changes: Partial<RunInstancesCommandInput>) =>
  client().send(new RunInstancesCommand(launchOf(images.debian!, changes)));

const tagged = (value: string): Pick<RunInstancesCommandInput, "TagSpecifications"> => ({
  TagSpecifications: [{ ResourceType: "instance", Tags: [{ Key: "test", Value: value }] }],
});

async function instancesTagged(value: string): Promise<readonly Instance[]> {
  const pages = paginateDescribeInstances(
    { client: client(), pageSize: 5 },
    { Filters: [{ Name: "tag:test", Values: [value] }] },
  );
  const found: Instance[] = [];
  for await (const page of pages)
    found.push(...(page.Reservations ?? []).flatMap(({ Instances = [] }) => Instances));
  return found;
}

describe("a launched instance", () => {
  test("is pending, then running with addresses, then terminated without a network, and always listed", async () => {
    const { Instances: launched } = await run({ ...tagged("life"), ClientToken: "life" });
    expect(launched![0]).toMatchObject({
      State: { Name: "pending" },
      AmiLaunchIndex: 0,
      ClientToken: "life",
    });
    const id = launched![0]!.InstanceId!;
    const [running] = await eventually(
      () => instancesTagged("life"),
      ([one]) => one?.State?.Name === "running",
    );
    expect(running).toMatchObject({
      InstanceId: id,
      Placement: { AvailabilityZone: "us-west-2a" },
      Tags: [{ Key: "test", Value: "life" }],
    });
    expect(running!.PrivateIpAddress).toStartWith("172.31.");
    expect(running!.PublicIpAddress).toStartWith("127.");
    const ended = await client().send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    expect(ended.TerminatingInstances).toEqual([
      {
        InstanceId: id,
        CurrentState: { Code: 32, Name: "shutting-down" },
        PreviousState: { Code: 16, Name: "running" },
      },
    ]);
    const [gone] = await eventually(
      () => instancesTagged("life"),
      ([one]) => one?.State?.Name === "terminated",
    );
    expect(gone).toMatchObject({ StateReason: { Code: "Client.UserInitiatedShutdown" } });
    expect(gone).not.toHaveProperty("PublicIpAddress");
    expect(gone).not.toHaveProperty("VpcId");
    expect(await codeOf(client().send(new TerminateInstancesCommand({ InstanceIds: [id] })))).toBe(
      "ok",
    );
  });

  test("is found neither by id nor by tags right after the launch", async () => {
    const launch = async (
      value: string,
      behaviour: { readonly id: number; readonly tags: number },
    ) => {
      cloud().behaviour.change({
        instancesVisibleAfterMs: behaviour.id,
        tagsVisibleAfterMs: behaviour.tags,
      });
      const { Instances: launched } = await run(tagged(value));
      cloud().behaviour.change({ instancesVisibleAfterMs: 0, tagsVisibleAfterMs: 0 });
      return [launched![0]!.InstanceId!];
    };
    const look = async (InstanceIds: string[]) =>
      codeOf(client().send(new DescribeInstancesCommand({ InstanceIds })));
    const hour = 3_600_000;
    const unseen = await launch("unseen", { id: hour, tags: hour });
    expect(await look(unseen)).toBe("InvalidInstanceID.NotFound");
    expect(
      await codeOf(client().send(new TerminateInstancesCommand({ InstanceIds: unseen }))),
    ).toBe("InvalidInstanceID.NotFound");
    const untagged = await launch("untagged", { id: 0, tags: hour });
    expect(await look(untagged)).toBe("ok");
    expect(await instancesTagged("untagged")).toEqual([]);
    const late = await launch("late", { id: 200, tags: 400 });
    const found = await eventually(
      () => instancesTagged("late"),
      (instances) => instances.length > 0,
    );
    expect(found.map(({ InstanceId }) => InstanceId)).toEqual(late);
    expect(await look(late)).toBe("ok");
  });

  test("is terminated if it powers itself off", async () => {
    const { Instances: launched } = await run({
      ...tagged("off"),
      InstanceInitiatedShutdownBehavior: "terminate",
    });
    await eventually(
      () => instancesTagged("off"),
      ([one]) => one?.State?.Name === "running",
    );
    await cloud().kill(launched![0]!.InstanceId!);
    const [gone] = await eventually(
      () => instancesTagged("off"),
      ([one]) => one?.State?.Name === "terminated",
    );
    expect(gone!.StateReason!.Code).toBe("Client.InstanceInitiatedShutdown");
  });

  test("is no longer listed an hour after its end", async () => {
    const { Instances: launched } = await run(tagged("hour"));
    await eventually(
      () => instancesTagged("hour"),
      (found) => found.length > 0,
    );
    await client().send(
      new TerminateInstancesCommand({ InstanceIds: [launched![0]!.InstanceId!] }),
    );
    await eventually(
      () => instancesTagged("hour"),
      ([one]) => one?.State?.Name === "terminated",
    );
    cloud().behaviour.change({ terminatedShownMs: 0 });
    expect(await instancesTagged("hour")).toEqual([]);
    cloud().behaviour.change({ terminatedShownMs: 3_600_000 });
  });

  test("returns its console output", async () => {
    const { Instances: launched } = await run(tagged("console"));
    const InstanceId = launched![0]!.InstanceId!;
    await eventually(
      () => instancesTagged("console"),
      ([one]) => one?.State?.Name === "running",
    );
    const ask = async () =>
      client().send(new GetConsoleOutputCommand({ InstanceId, Latest: true }));
    const { Output } = await eventually(ask, (answer) => answer.Output !== undefined);
    expect(Buffer.from(Output!, "base64").toString()).toContain("host key: ssh-ed25519 ");
  });
});

test("pages contain the requested instances in order, each once", async () => {
  await run({ ...tagged("pages"), MinCount: 12, MaxCount: 12 });
  const found = await eventually(
    () => instancesTagged("pages"),
    (instances) => instances.length >= 12,
  );
  expect(found.map((instance) => instance.AmiLaunchIndex)).toEqual([...Array(12).keys()]);
  expect(new Set(found.map((instance) => instance.InstanceId)).size).toBe(12);
  expect(
    cloud().requests.entries.filter(({ parameters }) => "NextToken" in parameters).length,
  ).toBeGreaterThan(1);
});

test("the same client token launches once; a different request with it is rejected", async () => {
  const first = await run({ ...tagged("token"), ClientToken: "once", MinCount: 2, MaxCount: 2 });
  const again = await run({ ...tagged("token"), ClientToken: "once", MinCount: 2, MaxCount: 2 });
  expect(again.ReservationId).toBe(first.ReservationId);
  expect(again.Instances!.map((one) => one.InstanceId)).toEqual(
    first.Instances!.map((one) => one.InstanceId),
  );
  expect(
    await codeOf(run({ ...tagged("token"), ClientToken: "once", MinCount: 3, MaxCount: 3 })),
  ).toBe("IdempotentParameterMismatch");
});

test("filters on the network don't find a terminated instance", async () => {
  const subnets = await client().send(
    new DescribeSubnetsCommand({ Filters: [{ Name: "default-for-az", Values: ["true"] }] }),
  );
  const { SubnetId, VpcId } = subnets.Subnets![1]!;
  const { Instances: launched } = await run({ ...tagged("network"), SubnetId });
  const byNetwork = async () =>
    client().send(
      new DescribeInstancesCommand({
        Filters: [
          { Name: "vpc-id", Values: [VpcId!] },
          { Name: "tag:test", Values: ["network"] },
        ],
      }),
    );
  await eventually(byNetwork, (answer) => answer.Reservations?.length === 1);
  await client().send(new TerminateInstancesCommand({ InstanceIds: [launched![0]!.InstanceId!] }));
  await eventually(byNetwork, (answer) => answer.Reservations?.length === 0);
  expect(await instancesTagged("network")).toHaveLength(1);
});

test("another region and another account don't see it", async () => {
  await run(tagged("here"));
  const elsewhere = clientOf(cloud(), { region: "eu-central-1" });
  const describeAll = new DescribeInstancesCommand({});
  expect((await elsewhere.send(describeAll)).Reservations).toEqual([]);
  const { accounts } = await import("../../local-cloud/endpoint/accounts.ts");
  expect((await clientOf(cloud(), accounts.other).send(describeAll)).Reservations).toEqual([]);
});

test.each<[string, string, Partial<RunInstancesCommandInput>]>([
  ["an image that isn't there", "InvalidAMIID.NotFound", { ImageId: "ami-00000000" }],
  ["an id that isn't one", "InvalidAMIID.Malformed", { ImageId: "debian" }],
  ["an unknown type", "InvalidParameterValue", { InstanceType: "m5.huge" as "m5.large" }],
  ["a type of another architecture", "InvalidParameterValue", { InstanceType: "m6g.large" }],
  ["more at least than at most", "InvalidParameterCombination", { MinCount: 3, MaxCount: 2 }],
  [
    "user data over 16 KiB",
    "InvalidParameterValue",
    { UserData: Buffer.alloc(16 * 1024 + 1, "a").toString("base64") },
  ],
  ["user data that isn't base64", "InvalidUserData.Malformed", { UserData: "not base64!" }],
  ["a key pair", "InvalidKeyPair.NotFound", { KeyName: "mine" }],
  ["an unknown subnet", "InvalidSubnetID.NotFound", { SubnetId: "subnet-1" }],
  ["an unknown group", "InvalidGroup.NotFound", { SecurityGroupIds: ["sg-1"] }],
  [
    "a root volume smaller than its image",
    "InvalidBlockDeviceMapping",
    { BlockDeviceMappings: [{ DeviceName: "/dev/xvda", Ebs: { VolumeSize: 4 } }] },
  ],
  [
    "a reserved tag",
    "InvalidParameterValue",
    { TagSpecifications: [{ ResourceType: "instance", Tags: [{ Key: "aws:x", Value: "" }] }] },
  ],
  ["a parameter that isn't simulated", "UnknownParameter", { EbsOptimized: true }],
  ["a dry run", "DryRunOperation", { DryRun: true }],
])("a launch with %s is answered with %s", async (_what, code, changes) => {
  const before = cloud().instances().length;
  expect(await codeOf(run(changes))).toBe(code);
  expect(cloud().instances()).toHaveLength(before);
});
