import {
  AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroupCommand,
  DeleteSecurityGroupCommand,
  DescribeImagesCommand,
  DescribeInstancesCommand,
  DescribeInstanceTypeOfferingsCommand,
  DescribeRegionsCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  type EC2Client,
  GetConsoleOutputCommand,
  ModifyInstanceMetadataOptionsCommand,
  RevokeSecurityGroupIngressCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
} from "@aws-sdk/client-ec2";
import type { Action, Calls } from "./api.ts";

export { EC2Client } from "@aws-sdk/client-ec2";
export { FetchHttpHandler } from "@smithy/fetch-http-handler";

interface Options {
  readonly abortSignal: AbortSignal;
}

type Senders = {
  readonly [Name in Action]: (
    client: EC2Client,
    input: Calls[Name]["input"],
    options: Options,
  ) => Promise<Calls[Name]["output"]>;
};

/**
 * One sender for each action. This file alone imports the SDK's commands, and it is itself loaded late (`await import`). Because it names the
 * commands instead of loading the whole SDK, the build can leave out the other seven hundred.
 */
export const senders: Senders = {
  AuthorizeSecurityGroupIngress: (client, input, options) =>
    client.send(new AuthorizeSecurityGroupIngressCommand(input), options),
  CreateSecurityGroup: (client, input, options) => client.send(new CreateSecurityGroupCommand(input), options),
  DeleteSecurityGroup: (client, input, options) => client.send(new DeleteSecurityGroupCommand(input), options),
  DescribeImages: (client, input, options) => client.send(new DescribeImagesCommand(input), options),
  DescribeInstances: (client, input, options) => client.send(new DescribeInstancesCommand(input), options),
  DescribeInstanceTypeOfferings: (client, input, options) =>
    client.send(new DescribeInstanceTypeOfferingsCommand(input), options),
  DescribeRegions: (client, input, options) => client.send(new DescribeRegionsCommand(input), options),
  DescribeSecurityGroups: (client, input, options) => client.send(new DescribeSecurityGroupsCommand(input), options),
  DescribeSubnets: (client, input, options) => client.send(new DescribeSubnetsCommand(input), options),
  GetConsoleOutput: (client, input, options) => client.send(new GetConsoleOutputCommand(input), options),
  ModifyInstanceMetadataOptions: (client, input, options) =>
    client.send(new ModifyInstanceMetadataOptionsCommand(input), options),
  RevokeSecurityGroupIngress: (client, input, options) =>
    client.send(new RevokeSecurityGroupIngressCommand(input), options),
  RunInstances: (client, input, options) => client.send(new RunInstancesCommand(input), options),
  TerminateInstances: (client, input, options) => client.send(new TerminateInstancesCommand(input), options),
};
