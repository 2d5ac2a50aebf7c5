/** The local cloud's images, regions, networks and instance types, compared with EC2's. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  DescribeAvailabilityZonesCommand,
  DescribeImagesCommand,
  type DescribeImagesCommandInput,
  DescribeInstanceTypeOfferingsCommand,
  DescribeInstanceTypesCommand,
  DescribeRegionsCommand,
  DescribeSubnetsCommand,
  DescribeVpcsCommand,
  type EC2Client,
  paginateDescribeInstanceTypes,
} from "@aws-sdk/client-ec2";
import { lookAlikeOwner } from "../../local-cloud/catalogue/images.ts";
import { clientOf, codeOf, startCloud } from "../../local-cloud/support/sdk.ts";

const opened: { current?: Awaited<ReturnType<typeof startCloud>> } = {};
const client = (): EC2Client => opened.current!.client;

beforeAll(async () => {
  opened.current = await startCloud({});
});

afterAll(async () => opened.current?.[Symbol.asyncDispose]());

describe("images", () => {
  const usable = [
    { Name: "architecture", Values: ["x86_64"] },
    { Name: "virtualization-type", Values: ["hvm"] },
    { Name: "root-device-type", Values: ["ebs"] },
    { Name: "state", Values: ["available"] },
  ];
  const find = async (input: DescribeImagesCommandInput) =>
    (await client().send(new DescribeImagesCommand(input))).Images ?? [];

  test.each([
    ["125523088429", "CentOS Linux 7 x86_64*"],
    ["309956199498", "RHEL-7.9_HVM-*"],
    ["309956199498", "RHEL-8*_HVM-*"],
    ["309956199498", "RHEL-9*_HVM-*"],
    ["792107900819", "Rocky-8-EC2-Base-*.x86_64"],
    ["792107900819", "Rocky-9-EC2-Base-*.x86_64"],
    ["764336703387", "AlmaLinux OS 8*x86_64"],
    ["764336703387", "AlmaLinux OS 9*x86_64"],
    ["136693071363", "debian-11-amd64-*"],
    ["136693071363", "debian-12-amd64-*"],
    ["136693071363", "debian-13-amd64-*"],
    ["099720109477", "ubuntu/images/hvm-ssd*/ubuntu-*-20.04-amd64-server-*"],
    ["099720109477", "ubuntu/images/hvm-ssd*/ubuntu-*-22.04-amd64-server-*"],
    ["099720109477", "ubuntu/images/hvm-ssd*/ubuntu-*-24.04-amd64-server-*"],
    ["137112412989", "amzn2-ami-kernel-5.10-hvm-*-x86_64-gp2"],
    ["137112412989", "al2023-ami-2023.*-x86_64"],
  ])("of %s, %s: several versions", async (owner, name) => {
    const Filters = [...usable, { Name: "name", Values: [name] }];
    const found = await find({ Owners: [owner], Filters, IncludeDeprecated: true });
    expect(new Set(found.map((image) => image.CreationDate)).size).toBeGreaterThan(1);
    expect(
      found.every((image) => image.OwnerId === owner && image.RootDeviceName !== undefined),
    ).toBe(true);
  });

  test("a look-alike image of another owner is newer than the genuine ones", async () => {
    const all = await find({
      Filters: [...usable, { Name: "name", Values: ["debian-12-amd64-*"] }],
    });
    const newest = all.toSorted((a, b) => b.CreationDate!.localeCompare(a.CreationDate!))[0]!;
    expect(newest.OwnerId).toBe(lookAlikeOwner);
  });

  test("deprecated ones are returned on request, or by id", async () => {
    const Filters = [{ Name: "name", Values: ["CentOS Linux 7 x86_64*"] }];
    const Owners = ["125523088429"];
    expect(await find({ Owners, Filters })).toEqual([]);
    const [image] = await find({ Owners, Filters, IncludeDeprecated: true });
    expect(image!.DeprecationTime).toBeDefined();
    expect(await find({ ImageIds: [image!.ImageId!] })).toHaveLength(1);
  });

  test("some are missing in a region", async () => {
    const command = new DescribeImagesCommand({
      Owners: ["125523088429"],
      IncludeDeprecated: true,
    });
    const elsewhere = clientOf(opened.current!.cloud, { region: "ap-southeast-2" });
    expect((await elsewhere.send(command)).Images).toEqual([]);
  });
});

test("the default VPC has a subnet with public addresses in each zone", async () => {
  const Filters = [{ Name: "is-default", Values: ["true"] }];
  const { Vpcs } = await client().send(new DescribeVpcsCommand({ Filters }));
  expect(Vpcs).toHaveLength(1);
  const ofVpc = [
    { Name: "vpc-id", Values: [Vpcs![0]!.VpcId!] },
    { Name: "default-for-az", Values: ["true"] },
  ];
  const { Subnets } = await client().send(new DescribeSubnetsCommand({ Filters: ofVpc }));
  const { AvailabilityZones } = await client().send(new DescribeAvailabilityZonesCommand({}));
  expect(Subnets!.map((subnet) => subnet.AvailabilityZone)).toEqual(
    AvailabilityZones!.map((zone) => zone.ZoneName),
  );
  expect(AvailabilityZones![0]).toMatchObject({
    ZoneName: "us-west-2a",
    ZoneId: "usw2-az1",
    State: "available",
  });
  expect(
    Subnets!.every(
      (subnet) => subnet.MapPublicIpOnLaunch && subnet.AvailableIpAddressCount! > 1000,
    ),
  ).toBe(true);
});

test("regions that aren't enabled are returned only if all are requested", async () => {
  const names = async (AllRegions: boolean) =>
    (await client().send(new DescribeRegionsCommand({ AllRegions }))).Regions!.map(
      (region) => region.RegionName,
    );
  expect(await names(false)).not.toContain("af-south-1");
  expect(await names(true)).toContain("af-south-1");
});

describe("instance types", () => {
  test("are paged", async () => {
    const names: string[] = [];
    const pages = paginateDescribeInstanceTypes({ client: client(), pageSize: 5 }, {});
    for await (const page of pages)
      names.push(...page.InstanceTypes!.map((type) => type.InstanceType!));
    expect(names).toContain("m5.large");
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBeGreaterThan(5);
  });

  test("have vCPUs, memory and architectures", async () => {
    const command = new DescribeInstanceTypesCommand({ InstanceTypes: ["m5.large"] });
    expect((await client().send(command)).InstanceTypes).toMatchObject([
      {
        VCpuInfo: { DefaultVCpus: 2 },
        MemoryInfo: { SizeInMiB: 8192 },
        ProcessorInfo: { SupportedArchitectures: ["x86_64"] },
        Hypervisor: "nitro",
      },
    ]);
    const unknown = new DescribeInstanceTypesCommand({ InstanceTypes: ["m5.huge" as "m5.large"] });
    expect(await codeOf(client().send(unknown))).toBe("InvalidInstanceType");
  });

  test("can be missing in a zone", async () => {
    const command = new DescribeInstanceTypeOfferingsCommand({
      LocationType: "availability-zone",
      Filters: [{ Name: "instance-type", Values: ["m5.large"] }],
    });
    const { InstanceTypeOfferings } = await client().send(command);
    expect(InstanceTypeOfferings!.map((offering) => offering.Location)).toEqual([
      "us-west-2a",
      "us-west-2b",
      "us-west-2c",
    ]);
  });
});

test("an unknown filter, parameter or action is rejected, never ignored", async () => {
  const Filters = [{ Name: "instance-color", Values: ["red"] }];
  expect(await codeOf(client().send(new DescribeSubnetsCommand({ Filters })))).toBe(
    "InvalidParameterValue",
  );
  const { DescribeFleetsCommand } = await import("@aws-sdk/client-ec2");
  expect(await codeOf(client().send(new DescribeFleetsCommand({})))).toBe("InvalidAction");
  const excluded = new DescribeRegionsCommand({ Filters: [{ Name: "region-name" }] });
  expect((await client().send(excluded)).Regions).toEqual([]);
});

test("every response has a request id, which is logged too", async () => {
  const { $metadata } = await client().send(new DescribeRegionsCommand({}));
  const logged = opened.current!.cloud.requests.entries.map(({ requestId }) => requestId);
  expect(logged).toContain($metadata.requestId!);
});
