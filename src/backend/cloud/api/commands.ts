import {
  AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroupCommand,
  DeleteSecurityGroupCommand,
  DescribeImagesCommand,
  DescribeInstancesCommand,
  DescribeInstanceTypeOfferingsCommand,
  DescribeInstanceTypesCommand,
  DescribeRegionsCommand,
  DescribeSecurityGroupsCommand,
  DescribeSubnetsCommand,
  GetConsoleOutputCommand,
  ModifyInstanceMetadataOptionsCommand,
  RevokeSecurityGroupIngressCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
} from "@aws-sdk/client-ec2";

export { EC2Client } from "@aws-sdk/client-ec2";
export { FetchHttpHandler } from "@smithy/fetch-http-handler";

/**
 * The SDK's command for each action. This file alone imports the commands, and it is itself loaded
 * late (`await import`). Because it names the commands instead of loading the whole SDK, the build
 * can leave out the other seven hundred.
 */
export const commands = {
  AuthorizeSecurityGroupIngress: AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroup: CreateSecurityGroupCommand,
  DeleteSecurityGroup: DeleteSecurityGroupCommand,
  DescribeImages: DescribeImagesCommand,
  DescribeInstances: DescribeInstancesCommand,
  DescribeInstanceTypeOfferings: DescribeInstanceTypeOfferingsCommand,
  DescribeInstanceTypes: DescribeInstanceTypesCommand,
  DescribeRegions: DescribeRegionsCommand,
  DescribeSecurityGroups: DescribeSecurityGroupsCommand,
  DescribeSubnets: DescribeSubnetsCommand,
  GetConsoleOutput: GetConsoleOutputCommand,
  ModifyInstanceMetadataOptions: ModifyInstanceMetadataOptionsCommand,
  RevokeSecurityGroupIngress: RevokeSecurityGroupIngressCommand,
  RunInstances: RunInstancesCommand,
  TerminateInstances: TerminateInstancesCommand,
} as const;
