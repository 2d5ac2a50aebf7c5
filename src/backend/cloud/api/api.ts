import type * as ec2 from "@aws-sdk/client-ec2";

/** The cloud's API in one region, with one set of credentials. */
export interface CloudApi {
  readonly region: string;
  /** Describes, in words, which credentials are used. */
  readonly credentialSource: string;
  /** When the credentials expire; absent if they don't, or if that is unknown. */
  readonly credentialsExpireAt?: Date;
  /**
   * Sends one request, and retries transient faults and throttling a limited number of times. Throws a ClusterError
   * (failureCode() returns its code), or the signal's reason as soon as it is aborted. After an abort, nobody knows
   * whether the request was carried out.
   */
  call<Name extends Action>(
    action: Name,
    input: Calls[Name]["input"],
    signal: AbortSignal,
  ): Promise<Calls[Name]["output"]>;
  /**
   * Returns the milliseconds since 1970 by the API's clock, as of its latest answer, because this machine's clock may
   * be wrong.
   */
  now(): number;
}

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
  readonly RevokeSecurityGroupIngress: Call<
    ec2.RevokeSecurityGroupIngressCommandInput,
    ec2.RevokeSecurityGroupIngressCommandOutput
  >;
  readonly RunInstances: Call<ec2.RunInstancesCommandInput, ec2.RunInstancesCommandOutput>;
  readonly TerminateInstances: Call<ec2.TerminateInstancesCommandInput, ec2.TerminateInstancesCommandOutput>;
}

export type Action = keyof Calls;

interface Call<Input, Output> {
  readonly input: Input;
  readonly output: Output;
}
