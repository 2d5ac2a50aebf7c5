import type * as ec2 from "@aws-sdk/client-ec2";

/** The API actions that this program uses, each with its request and its answer. */
export interface Calls {
  readonly AuthorizeSecurityGroupIngress: Call<
    ec2.AuthorizeSecurityGroupIngressCommandInput,
    ec2.AuthorizeSecurityGroupIngressCommandOutput
  >;
  readonly CreateSecurityGroup: Call<ec2.CreateSecurityGroupCommandInput, ec2.CreateSecurityGroupCommandOutput>;
  readonly DeleteSecurityGroup: Call<ec2.DeleteSecurityGroupCommandInput, ec2.DeleteSecurityGroupCommandOutput>;
  readonly DescribeImages: Call<ec2.DescribeImagesCommandInput, ec2.DescribeImagesCommandOutput>;
  readonly DescribeInstances: Call<ec2.DescribeInstancesCommandInput, ec2.DescribeInstancesCommandOutput>;
  readonly DescribeInstanceTypeOfferings: Call<
    ec2.DescribeInstanceTypeOfferingsCommandInput,
    ec2.DescribeInstanceTypeOfferingsCommandOutput
  >;
  readonly DescribeRegions: Call<ec2.DescribeRegionsCommandInput, ec2.DescribeRegionsCommandOutput>;
  readonly DescribeSecurityGroups: Call<
    ec2.DescribeSecurityGroupsCommandInput,
    ec2.DescribeSecurityGroupsCommandOutput
  >;
  readonly DescribeSubnets: Call<ec2.DescribeSubnetsCommandInput, ec2.DescribeSubnetsCommandOutput>;
  readonly GetConsoleOutput: Call<ec2.GetConsoleOutputCommandInput, ec2.GetConsoleOutputCommandOutput>;
  readonly ModifyInstanceMetadataOptions: Call<
    ec2.ModifyInstanceMetadataOptionsCommandInput,
    ec2.ModifyInstanceMetadataOptionsCommandOutput
  >;
  readonly RunInstances: Call<ec2.RunInstancesCommandInput, ec2.RunInstancesCommandOutput>;
  readonly TerminateInstances: Call<ec2.TerminateInstancesCommandInput, ec2.TerminateInstancesCommandOutput>;
}

export type Action = keyof Calls;

interface Call<Input, Output> {
  readonly input: Input;
  readonly output: Output;
}
