/** Another user, who may launch and tag instances and create security groups in the account of the tests' cloud. */
import {
  AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroupCommand,
  CreateTagsCommand,
  DeleteSecurityGroupCommand,
  DescribeImagesCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  DescribeVpcsCommand,
  EC2Client,
  RunInstancesCommand,
  type SecurityGroup,
  TerminateInstancesCommand,
} from "@aws-sdk/client-ec2";
import type { TestCloud } from "./test-cloud.ts";

const region = "us-west-2";

export interface Attacker {
  /** Launches an instance with these tags; resolves with its id. `NAME` stands for `cluster-e2e:NAME`. */
  launch(tags: Readonly<Record<string, string>>, place?: Place): Promise<string>;
  /** Changes tags of any resource. */
  tag(id: string, tags: Readonly<Record<string, string>>): Promise<void>;
  terminate(id: string): Promise<void>;
  /** Creates a group in another network, with the name and the tags of a group, that admits only this range. */
  copyGroup(groupId: string, range: string): Promise<Place>;
  deleteGroup(groupId: string): Promise<void>;
  /** The ranges that a group admits. */
  rangesOf(groupId: string): Promise<readonly string[]>;
}

/** A security group, and a subnet of its network. */
interface Place {
  readonly groupId: string;
  readonly subnetId: string;
}

export function attackerIn({ environment }: Pick<TestCloud, "environment">): Attacker {
  const client = new EC2Client({
    region,
    endpoint: environment["AWS_ENDPOINT_URL_EC2"]!,
    credentials: {
      accessKeyId: environment["CLOUD_ACCESS_KEY_ID"]!,
      secretAccessKey: environment["CLOUD_SECRET_ACCESS_KEY"]!,
    },
  });
  const toTags = (tags: Readonly<Record<string, string>>) =>
    Object.entries(tags).map(([name, Value]) => ({ Key: `cluster-e2e:${name}`, Value }));
  const groupWith = async (groupId: string): Promise<SecurityGroup> => {
    const { SecurityGroups = [] } = await client.send(
      new DescribeSecurityGroupsCommand({ GroupIds: [groupId] }),
    );
    return SecurityGroups[0]!;
  };
  return {
    tag: async (id, tags) => {
      await client.send(new CreateTagsCommand({ Resources: [id], Tags: toTags(tags) }));
    },
    terminate: async (id) => {
      await client.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    },
    copyGroup: async (groupId, range) => {
      const { GroupName, Tags = [] } = await groupWith(groupId);
      const TagSpecifications = [{ ResourceType: "security-group" as const, Tags }];
      const { Vpcs = [] } = await client.send(new DescribeVpcsCommand({}));
      const { VpcId } = Vpcs.find(({ IsDefault }) => IsDefault !== true)!;
      const made = { GroupName, Description: "x", VpcId, TagSpecifications };
      const { GroupId = "" } = await client.send(new CreateSecurityGroupCommand(made));
      const ssh = { IpProtocol: "tcp", FromPort: 22, ToPort: 22, IpRanges: [{ CidrIp: range }] };
      const IpPermissions = [{ IpProtocol: "-1", UserIdGroupPairs: [{ GroupId }] }, ssh];
      await client.send(new AuthorizeSecurityGroupIngressCommand({ GroupId, IpPermissions }));
      const { Subnets = [] } = await client.send(new DescribeSubnetsCommand({}));
      return {
        groupId: GroupId,
        subnetId: Subnets.find((subnet) => subnet.VpcId === VpcId)!.SubnetId!,
      };
    },
    deleteGroup: async (groupId) => {
      await client.send(new DeleteSecurityGroupCommand({ GroupId: groupId }));
    },
    rangesOf: async (groupId) => {
      const ranges = ((await groupWith(groupId)).IpPermissions ?? []).flatMap(
        ({ IpRanges = [] }) => IpRanges,
      );
      return [...new Set(ranges.map(({ CidrIp = "" }) => CidrIp))];
    },
    launch: async (tags, place) => {
      const { Instances = [] } = await client.send(
        new RunInstancesCommand({
          ImageId: await anyImage(client),
          InstanceType: "m5.large",
          MinCount: 1,
          MaxCount: 1,
          ...(place !== undefined && {
            SecurityGroupIds: [place.groupId],
            SubnetId: place.subnetId,
          }),
          TagSpecifications: [{ ResourceType: "instance", Tags: toTags(tags) }],
        }),
      );
      return Instances[0]!.InstanceId!;
    },
  };
}

async function anyImage(client: EC2Client): Promise<string> {
  const { Images = [] } = await client.send(new DescribeImagesCommand({}));
  return Images[0]!.ImageId!;
}
