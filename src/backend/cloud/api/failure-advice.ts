import type { ErrorId } from "../../../errors.ts";
import { optionName } from "../../../references.ts";

/** Describes the request, for the message of its failure. */
export interface CallContext {
  readonly action: string;
  readonly region: string;
  readonly credentialSource: string;
  /** How to renew these credentials. */
  readonly renewal: string;
  /** How many seconds this machine's clock is behind the API's (negative: ahead). */
  readonly clockOffSeconds: number;
  /** The address that requests go to, if it isn't the cloud provider's own, and where it is set. */
  readonly endpoint: string | undefined;
  /** The proxy that requests go through, and the variable that names it. */
  readonly proxy: string | undefined;
}

export interface Advice {
  /** EC2's codes. `*` stands for any text. */
  readonly codes: readonly string[];
  /** A pattern that the API's own message must match too. */
  readonly message?: RegExp;
  readonly id: ErrorId;
  readonly transient?: boolean;
  /** What happened, in our words. The API's own message follows it. */
  readonly what: (context: CallContext) => string;
  readonly hint: (context: CallContext, message: string) => string;
}

/**
 * Codes to which the program itself reacts. `*` stands for any text. The table below has the
 * messages for all others.
 */
export const meanings = {
  /** The refusal may not apply in another zone. `Unsupported`: see `isAboutZone`. */
  "zone-full": ["Insufficient*Capacity", "Unsupported", "InsufficientFreeAddressesInSubnet"],
  "group-exists": ["InvalidGroup.Duplicate"],
  "group-missing": ["InvalidGroup*NotFound"],
  "group-in-use": ["DependencyViolation"],
  "rule-exists": ["InvalidPermission.Duplicate"],
  "rule-missing": ["InvalidPermission.NotFound"],
  "machine-missing": ["InvalidInstanceID.NotFound"],
  /** EC2 gives the same answer for bad credentials. */
  "region-unknown": ["AuthFailure"],
  /** A dry run would have been carried out. */
  "dry-run-passed": ["DryRunOperation"],
  /** An older instance type can't do it. */
  "not-for-this-type": ["UnsupportedOperation"],
} as const;

export type FailureMeaning = keyof typeof meanings;

/**
 * The reason of an `Unsupported` that no other zone changes. EC2 doesn't say which one it is if it
 * only mentions the "configuration".
 */
const lastingRefusal =
  /^(?!.*availability zone)(?!.*requested configuration is currently not supported)/i;

/** Whether a refusal of a zone may not apply in another one. */
export const isAboutZone = (message: string): boolean => !lastingRefusal.test(message);

/** Source of the codes: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html */
export const adviceTable: readonly Advice[] = [
  {
    codes: [
      ...meanings["region-unknown"],
      "InvalidClientTokenId",
      "SignatureDoesNotMatch",
      "MissingAuthenticationToken",
      "IncompleteSignature",
    ],
    id: "credentials-refused",
    what: (context) => `The cloud refused the credentials from ${context.credentialSource}`,
    hint: (context) =>
      clockHint(context) ??
      "Check that the key and the secret belong together, are active, and may be used in this region.",
  },
  {
    codes: ["ExpiredToken", "ExpiredTokenException"],
    id: "credentials-refused",
    what: sessionExpired,
    hint: (context) => clockHint(context) ?? context.renewal,
  },
  {
    codes: ["RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"],
    id: "credentials-refused",
    // EC2 also uses this code for an expired session.
    what: (context) =>
      clockHint(context) === undefined
        ? sessionExpired(context)
        : "The cloud rejected a request because of its timestamp",
    hint: (context) => clockHint(context) ?? context.renewal,
  },
  {
    codes: ["UnauthorizedOperation", "AccessDenied", "AccessDeniedException"],
    id: "not-permitted",
    what: (context) =>
      `The account may not call ec2:${context.action} with the credentials from ${context.credentialSource}`,
    hint: permissionHint,
  },
  {
    codes: ["OptInRequired"],
    message: /marketplace/i,
    id: "not-permitted",
    what: () => "The account has no subscription to the image",
    hint: (_, message) =>
      `${subscription(message)}, or choose another ${optionName("linuxDistribution")} or ${optionName("image")}.`,
  },
  {
    codes: ["OptInRequired"],
    id: "region-not-enabled",
    what: (context) => `The account cannot use region ${context.region}`,
    hint: () =>
      `Enable the region or service for the account, or choose another ${optionName("region")}.`,
  },
  {
    codes: ["PendingVerification"],
    id: "not-permitted",
    what: (context) => `The account is still being verified for region ${context.region}`,
    hint: () =>
      `Wait until the cloud has verified the account, usually some hours, or choose another ${optionName("region")}.`,
  },
  {
    codes: ["Blocked"],
    id: "not-permitted",
    what: () => "The cloud has blocked the account",
    hint: () => "Only the cloud's support can unblock it: open the account's billing page.",
  },
  {
    codes: ["TagPolicyViolation"],
    id: "not-permitted",
    what: () => "A policy of the organization does not allow these tags",
    hint: () => tagHint,
  },
  {
    codes: ["InvalidParameterValue", "InvalidTag*", "TagLimitExceeded"],
    message: /\btags?\b/i,
    id: "cloud-failed",
    what: () => "The cloud does not accept the tags",
    hint: () => tagHint,
  },
  {
    codes: ["SecurityGroupLimitExceeded"],
    id: "capacity-lacking",
    what: (context) =>
      `The account's limit for security groups in region ${context.region} is reached`,
    hint: () => "Delete security groups that nothing uses, or have the limit raised.",
  },
  {
    codes: ["RulesPerSecurityGroupLimitExceeded"],
    id: "capacity-lacking",
    what: () => "The account's limit for the rules of a security group is reached",
    hint: () =>
      `Pass fewer ranges with ${optionName("adminCidrs")}, or one that contains them; remove ranges that are not needed with the command admit; or have the limit raised.`,
  },
  {
    codes: ["VolumeLimitExceeded", "MaxIOPSLimitExceeded", "SnapshotLimitExceeded"],
    id: "capacity-lacking",
    what: (context) => `The account's limit for volumes in region ${context.region} is reached`,
    hint: () =>
      "Delete volumes that nothing uses, request fewer machines, or have the limit raised.",
  },
  {
    codes: [
      "VcpuLimitExceeded",
      "InstanceLimitExceeded",
      "MaxSpotInstanceCountExceeded",
      "NetworkInterfaceLimitExceeded",
      "AddressLimitExceeded",
    ],
    id: "capacity-lacking",
    what: (context) => `The account's limit in region ${context.region} is reached`,
    hint: () =>
      `Request fewer machines or a smaller ${optionName("instanceType")}, or have the limit raised.`,
  },
  {
    codes: ["Unsupported"],
    message: lastingRefusal,
    id: "cloud-failed",
    what: () => "The cloud does not offer machines of this kind",
    hint: () =>
      `Choose another ${optionName("instanceType")} or ${optionName("image")} according to the cloud's message. No other zone helps.`,
  },
  {
    codes: meanings["zone-full"],
    id: "capacity-lacking",
    what: (context) => `The cloud has no capacity for the machines in region ${context.region}`,
    hint: () =>
      `Choose another ${optionName("instanceType")} or ${optionName("region")}, or try again later.`,
  },
  {
    codes: ["InvalidAMIID.*", "InvalidAMIId.*", "InvalidAMIName.*"],
    id: "image-not-found",
    what: (context) => `The image cannot be used in region ${context.region}`,
    hint: () =>
      `Pass an image of this region with ${optionName("image")} and ${optionName("sshUser")}, or omit both.`,
  },
  {
    codes: ["VPCIdNotSpecified", "InvalidSubnetID.*", "InvalidSubnet", "DefaultVpcDoesNotExist"],
    id: "no-default-network",
    what: noNetwork,
    hint: () => subnetHint,
  },
  {
    codes: ["MissingParameter"],
    message: /vpc|subnet|network/i,
    id: "no-default-network",
    what: noNetwork,
    hint: () => subnetHint,
  },
  {
    codes: ["InvalidParameterValue", "InvalidParameterCombination", "UnsupportedOperation"],
    message: /architecture|boot mode|\bUEFI\b|\bENA\b|virtualization|paravirtual/i,
    id: "cloud-failed",
    what: () => "The image does not fit the instance type",
    hint: () =>
      `Choose another ${optionName("instanceType")}, such as m6i.large for images of x86_64, or another ${optionName("image")}.`,
  },
  {
    codes: ["OperationNotPermitted"],
    id: "not-permitted",
    what: (context) => `The cloud does not permit ec2:${context.action} here`,
    hint: () => "The cloud's message says why, such as a protection that somebody has set.",
  },
  {
    codes: [
      "InvalidParameterValue",
      "InvalidParameterCombination",
      "InvalidParameter",
      "InvalidBlockDeviceMapping",
    ],
    id: "cloud-failed",
    what: (context) => `The cloud rejected a parameter of ec2:${context.action}`,
    hint: () =>
      `The cloud's message names the parameter. Check ${optionName("instanceType")}, ${optionName("image")}, ${optionName("subnetId")}, ${optionName("adminCidrs")} and ${optionName("customTags")}; if none of them is the cause, please report this bug.`,
  },
  {
    codes: [
      "RequestLimitExceeded",
      "Throttling",
      "ThrottlingException",
      "RequestThrottled",
      "EC2ThrottledException",
      "SlowDown",
    ],
    id: "cloud-failed",
    transient: true,
    what: (context) => `The API kept throttling ec2:${context.action}`,
    hint: () =>
      "Another program sends many requests for this account and region: stop it, or try again later.",
  },
  {
    codes: [
      "InternalError",
      "InternalFailure",
      "ServiceUnavailable",
      "Unavailable",
      "RequestTimeout",
    ],
    id: "cloud-failed",
    transient: true,
    what: (context) => `The API failed to carry out ec2:${context.action}`,
    hint: () => "Try again later, and check the cloud's status page.",
  },
];

function sessionExpired(context: CallContext): string {
  return `The session of the credentials from ${context.credentialSource} has expired`;
}

function subscription(message: string): string {
  const [address] =
    /https?:\/\/(?:[a-z0-9-]+\.)*amazon\.com\/marketplace\/[\w?=&%./-]+/i.exec(message) ?? [];
  return `Accept the image's terms in the cloud's marketplace${address === undefined ? "" : ` (${address})`}`;
}

const subnetHint = `Pass a subnet that assigns public addresses with ${optionName("subnetId")}.`;

function noNetwork(context: CallContext): string {
  return `Region ${context.region} has no network that the machines can use`;
}

const tagHint = `Pass the tags that your organization requires, with allowed values, with ${optionName("customTags")}.`;

/**
 * A policy above the user's own permissions decides, if the API's message names one: a further
 * permission for the user doesn't help then.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
 */
function permissionHint({ action }: CallContext, message: string): string {
  const [, denied = `ec2:${action}`] =
    /not authorized to perform: ([a-z0-9-]{1,40}:\w{1,80})/i.exec(message) ?? [];
  const [, denying] =
    /with an explicit deny in an? ([a-z -]{1,60}(?:policy|boundary))/i.exec(message) ?? [];
  if (denying !== undefined)
    return `The ${denying} forbids ${denied} for this request, and no permission overrides that. Ask who manages the policy: it may require tags (${optionName("customTags")}), another ${optionName("instanceType")} or another ${optionName("region")}.`;
  const [, lacking = ""] =
    /because no ([a-z -]{1,60}(?:policy|boundary)) allows/i.exec(message) ?? [];
  return lacking === "" || lacking === "identity-based policy"
    ? `Allow ${denied} for this user or role.`
    : `Allow ${denied} in the ${lacking} too: the permissions of this user or role are not enough.`;
}

function clockHint(context: CallContext): string | undefined {
  const off = Math.round(context.clockOffSeconds);
  if (Math.abs(off) < 300) return undefined;
  return `This computer's clock is ${Math.abs(off)} s ${off > 0 ? "behind" : "ahead of"} the API's: correct it.`;
}
