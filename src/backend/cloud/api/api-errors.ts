import { ClusterError, type ErrorId, hasErrorId } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { plainLine, withoutFullStop } from "../../../system/printable.ts";

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
}

interface Advice {
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

/** Codes to which the program itself reacts. `*` stands for any text. The table below has the messages for all others. */
const meanings = {
  /** The refusal may not apply in another zone. `Unsupported`: the zone doesn't have the instance type. */
  "zone-full": ["InsufficientInstanceCapacity", "Unsupported", "InsufficientFreeAddressesInSubnet"],
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

/** Source of the codes: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html */
const table: readonly Advice[] = [
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
    hint: (context) =>
      `Allow ec2:${context.action} for this user or role. The API's encoded authorization message is in the log, and shown with -v.`,
  },
  {
    codes: ["OptInRequired"],
    message: /marketplace/i,
    id: "not-permitted",
    what: () => "The account has no subscription to the image",
    hint: (_, message) => `${subscription(message)}, or choose another \`linuxDistribution\` or \`image\`.`,
  },
  {
    codes: ["OptInRequired", "PendingVerification", "Blocked"],
    id: "region-not-enabled",
    what: (context) => `The account cannot use region ${context.region}`,
    hint: () => "Enable the region or service for the account, or choose another `region`.",
  },
  {
    codes: ["VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "VolumeLimitExceeded"],
    id: "capacity-lacking",
    what: (context) => `The account's limit in region ${context.region} is reached`,
    hint: () => "Request fewer machines or a smaller `instanceType`, or have the limit raised.",
  },
  {
    codes: [...meanings["zone-full"], "InsufficientHostCapacity"],
    id: "capacity-lacking",
    what: (context) => `The cloud has no capacity for the machines in region ${context.region}`,
    hint: () => "Choose another `instanceType` or `region`, or try again later.",
  },
  {
    codes: ["InvalidAMIID.*", "InvalidAMIId.*", "InvalidAMIName.*"],
    id: "image-not-found",
    what: (context) => `The image cannot be used in region ${context.region}`,
    hint: () => "Pass an image of this region with `image` and `sshUser`, or omit both.",
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
    codes: ["InvalidParameterValue", "InvalidParameterCombination", "InvalidParameter", "InvalidBlockDeviceMapping"],
    id: "cloud-failed",
    what: (context) => `The cloud rejected a parameter of ec2:${context.action}`,
    hint: () =>
      "The cloud's message names the parameter. Check `instanceType`, `image`, `subnetId`, `adminCidrs` and `customTags`; if none of them is the cause, please report this bug.",
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
    hint: () => "Another program sends many requests for this account and region: stop it, or try again later.",
  },
  {
    codes: ["InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable", "RequestTimeout"],
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
  const [address] = /https?:\/\/(?:[a-z0-9-]+\.)*amazon\.com\/marketplace\/[\w?=&%./-]+/i.exec(message) ?? [];
  return `Accept the image's terms in the cloud's marketplace${address === undefined ? "" : ` (${address})`}`;
}

const subnetHint = "Pass a subnet that assigns public addresses with `subnetId`.";

function noNetwork(context: CallContext): string {
  return `Region ${context.region} has no network that the machines can use`;
}

/** Turns anything that a request threw into one error that users can act on. */
export function callFailure(error: unknown, context: CallContext): ClusterError {
  const { code: plainCode, message: plainMessage, requestId } = factsOf(error);
  const [code, message] = [outside(plainCode), outside(plainMessage)];
  const facts = { code, action: context.action, region: context.region, ...(requestId !== undefined && { requestId }) };
  if (isNoCredentials(error)) return notRenewed(context, message, { facts, cause: error });
  if (!wasAnswered(error)) return unanswered(context, message, { facts, cause: error });
  const advice = table.find((entry) => isMatch(entry, plainCode, plainMessage));
  if (advice === undefined) {
    return new ClusterError(
      "cloud-failed",
      `ec2:${context.action} failed in region ${context.region}: ${message} (${code}).${endpointText(context)}`,
      {
        hint: `The cloud's support can look up the request${requestId === undefined ? "" : ` ${requestId}`}.`,
        facts,
        cause: error,
      },
    );
  }
  return new ClusterError(advice.id, `${advice.what(context)}: ${message} (${code}).${endpointText(context)}`, {
    hint: advice.hint(context, plainMessage),
    facts,
    transient: advice.transient ?? false,
    cause: error,
  });
}

/** Returns the API's own code of a failed call, such as `InvalidGroup.Duplicate`; `undefined` for any other error. */
export function failureCode(error: unknown): string | undefined {
  const code = error instanceof ClusterError ? error.facts["code"] : undefined;
  return typeof code === "string" ? code : undefined;
}

export function isFailure(error: unknown, meaning: FailureMeaning): boolean {
  return meanings[meaning].some((pattern) => matches(pattern, failureCode(error) ?? ""));
}

/**
 * Whether the API refused the request. If not, the API may have carried it out, and the answer was lost. If it refused the credentials, it may have
 * carried out an earlier attempt, before they expired.
 */
export function wasRefused(error: unknown): boolean {
  if (hasErrorId(error, "credentials-refused")) return false;
  const status = error instanceof ClusterError ? statusOf(error.cause) : undefined;
  return status !== undefined && status >= 400 && status < 500;
}

/** The SDK's own errors about sources of credentials. They have no codes. */
const isNoCredentials = (error: unknown): boolean =>
  error instanceof Error && ["CredentialsProviderError", "TokenProviderError"].includes(error.name);

function notRenewed(
  context: CallContext,
  message: string,
  detail: { facts: Record<string, unknown>; cause: unknown },
): ClusterError {
  const what = `The credentials from ${context.credentialSource} cannot be renewed for ec2:${context.action}`;
  return new ClusterError("no-credentials", `${what}: ${message}.`, { hint: context.renewal, ...detail });
}

function unanswered(
  context: CallContext,
  message: string,
  detail: { facts: Record<string, unknown>; cause: unknown },
): ClusterError {
  return new ClusterError(
    "cloud-failed",
    `The API in region ${context.region} did not answer ec2:${context.action}: ${message}.${endpointText(context)}`,
    {
      hint: "Check the network, the proxy variables (HTTPS_PROXY, NO_PROXY) and the region's name.",
      transient: true,
      ...detail,
    },
  );
}

const endpointText = ({ endpoint }: CallContext): string =>
  endpoint === undefined ? "" : ` The request went to ${endpoint}.`;

function isMatch(entry: Advice, code: string, message: string): boolean {
  return entry.codes.some((pattern) => matches(pattern, code)) && (entry.message?.test(message) ?? true);
}

function matches(pattern: string, code: string): boolean {
  const [start = "", end] = pattern.split("*");
  return end === undefined ? code === pattern : code.startsWith(start) && code.endsWith(end);
}

/** Only an error that the API itself sent has an HTTP status; see request-handler.ts. */
function wasAnswered(error: unknown): boolean {
  return statusOf(error) !== undefined;
}

function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("$metadata" in error)) return undefined;
  const metadata = error.$metadata as { readonly httpStatusCode?: number } | undefined;
  return metadata?.httpStatusCode;
}

function factsOf(error: unknown): { code: string; message: string; requestId: string | undefined } {
  if (!(error instanceof Error)) return { code: "unknown", message: plainLine(String(error)), requestId: undefined };
  const metadata = "$metadata" in error ? (error.$metadata as { readonly requestId?: string } | undefined) : undefined;
  const code = wasAnswered(error) || !("code" in error) ? error.name : String(error.code);
  return { code, message: withoutFullStop(plainLine(withoutEncoded(error.message))), requestId: metadata?.requestId };
}

const encoded = /Encoded authorization failure message: *(\S+)/;

const withoutEncoded = (message: string): string => message.replace(encoded, "");

/** Returns the part of a refusal that only `aws sts decode-authorization-message` can read, for the log. */
export function encodedMessage(error: unknown): string | undefined {
  return error instanceof Error ? encoded.exec(error.message)?.[1] : undefined;
}

function clockHint(context: CallContext): string | undefined {
  const off = Math.round(context.clockOffSeconds);
  if (Math.abs(off) < 300) return undefined;
  return `This machine's clock is ${Math.abs(off)} s ${off > 0 ? "behind" : "ahead of"} the API's: correct it.`;
}
