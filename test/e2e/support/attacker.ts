/** Another user, who may launch and tag instances in the account of the tests' cloud. */
import { DescribeImagesCommand, EC2Client, RunInstancesCommand } from "@aws-sdk/client-ec2";
import type { TestCloud } from "./test-cloud.ts";

const region = "us-west-2";

export interface Attacker {
  /** Launches an instance with these tags; resolves with its id. `NAME` stands for `cluster-e2e:NAME`. */
  launch(tags: Readonly<Record<string, string>>): Promise<string>;
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
  return {
    launch: async (tags) => {
      const { Instances = [] } = await client.send(
        new RunInstancesCommand({
          ImageId: await anyImage(client),
          InstanceType: "m5.large",
          MinCount: 1,
          MaxCount: 1,
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
