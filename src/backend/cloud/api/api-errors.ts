import { ClusterError, hasErrorId, messageOf } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { connectionFailures, proxyRefused } from "../../../system/network-failure.ts";
import { plainLine, withoutFullStop } from "../../../system/printable.ts";
import {
  type Advice,
  type CallContext,
  type FailureMeaning,
  adviceTable,
  isAboutZone,
  meanings,
} from "./failure-advice.ts";

/** Turns anything that a request threw into one error that users can act on. */
export function callFailure(error: unknown, context: CallContext): ClusterError {
  const { code: plainCode, message: plainMessage, requestId } = factsOf(error);
  const [code, message] = [outside(plainCode), outside(plainMessage)];
  const facts = {
    code,
    action: context.action,
    region: context.region,
    requestId,
  };
  if (isNoCredentials(error)) return notRenewed(context, message, { facts, cause: error });
  if (error instanceof Error && error.name === "EndpointError")
    return noEndpoint(context, message, { facts, cause: error });
  if (plainCode === proxyRefused) return refusedByProxy(context, message, { facts, cause: error });
  if (!wasAnswered(error))
    return unanswered(context, [plainCode, message], { facts, cause: error });
  const advice = adviceTable.find((entry) => isMatch(entry, plainCode, plainMessage));
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
  return new ClusterError(
    advice.id,
    `${advice.what(context)}: ${message} (${code}).${endpointText(context)}`,
    {
      hint: advice.hint(context, plainMessage) + encodedHint(error),
      facts,
      transient: advice.transient ?? false,
      cause: error,
    },
  );
}

/** Returns the API's own code of a failed call, such as `InvalidGroup.Duplicate`; `undefined` for any other error. */
export function failureCode(error: unknown): string | undefined {
  const code = error instanceof ClusterError ? error.facts["code"] : undefined;
  return typeof code === "string" ? code : undefined;
}

export function isFailure(error: unknown, meaning: FailureMeaning): boolean {
  const code = failureCode(error) ?? "";
  const isMeant = meanings[meaning].some((pattern) => matches(pattern, code));
  return (
    isMeant && (meaning !== "zone-full" || code !== "Unsupported" || isAboutZone(messageOf(error)))
  );
}

/**
 * Whether the API refused the request. If not, the API may have carried it out, and the answer was
 * lost. If it refused the credentials, it may have carried out an earlier attempt, before they
 * expired.
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
  return new ClusterError("no-credentials", `${what}: ${message}.`, {
    hint: context.renewal,
    ...detail,
  });
}

/** The SDK has no address for such a request, and hasn't sent it. */
function noEndpoint(
  context: CallContext,
  message: string,
  detail: { facts: Record<string, unknown>; cause: unknown },
) {
  const what = `The cloud has no endpoint for region ${context.region} of the kind that the settings ask for`;
  return new ClusterError("machine-not-set-up", `${what}: ${message}.`, {
    hint: "Check AWS_USE_FIPS_ENDPOINT, AWS_USE_DUALSTACK_ENDPOINT and the same settings of the profile.",
    ...detail,
  });
}

const proxyHint =
  "Correct the proxy's variable, or name the API's host in NO_PROXY if it can be reached directly.";

function refusedByProxy(
  context: CallContext,
  message: string,
  detail: { facts: Record<string, unknown>; cause: unknown },
): ClusterError {
  const what =
    `ec2:${context.action} in region ${context.region} did not get past the proxy ${context.proxy ?? ""}`.trimEnd();
  return new ClusterError(
    "machine-not-set-up",
    `${what}: ${message}.${endpointText({ ...context, proxy: undefined })}`,
    {
      hint: proxyHint,
      ...detail,
    },
  );
}

function unanswered(
  context: CallContext,
  [code, message]: readonly [string, string],
  detail: { facts: Record<string, unknown>; cause: unknown },
): ClusterError {
  const asked = `ec2:${context.action} in region ${context.region}`;
  const isProxy = context.proxy !== undefined;
  const what =
    isProxy && connectionFailures.has(code)
      ? `${asked} was not sent, because the proxy ${context.proxy} cannot be reached`
      : isProxy && code === "ERR_PROXY_TUNNEL"
        ? `${asked} did not get past the proxy ${context.proxy}`
        : undefined;
  if (what !== undefined)
    return new ClusterError(
      "cloud-failed",
      `${what}: ${message}.${endpointText({ ...context, proxy: undefined })}`,
      {
        hint: proxyHint,
        transient: true,
        ...detail,
      },
    );
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

const endpointText = ({ endpoint, proxy }: CallContext): string =>
  (endpoint === undefined ? "" : ` The request went to ${endpoint}.`) +
  (proxy === undefined ? "" : ` It went through the proxy ${proxy}.`);

function isMatch(entry: Advice, code: string, message: string): boolean {
  return (
    entry.codes.some((pattern) => matches(pattern, code)) && (entry.message?.test(message) ?? true)
  );
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

function factsOf(error: unknown) {
  if (!(error instanceof Error))
    return { code: "unknown", message: plainLine(String(error)), requestId: undefined };
  const metadata =
    "$metadata" in error
      ? (error.$metadata as { readonly requestId?: string } | undefined)
      : undefined;
  const code = wasAnswered(error) || !("code" in error) ? error.name : String(error.code);
  return {
    code,
    message: withoutFullStop(plainLine(error.message.replace(encoded, ""))),
    requestId: metadata?.requestId,
  };
}

/** EC2 sends such a message with some refusals only. Those of Describe actions have none. */
const encodedHint = (error: unknown): string =>
  encodedMessage(error) === undefined
    ? ""
    : " The API's encoded authorization message is in the log, and shown with -v.";

const encoded = /Encoded authorization failure message: *(\S+)/;

/** Returns the part of a refusal that only `aws sts decode-authorization-message` can read, for the log. */
export function encodedMessage(error: unknown): string | undefined {
  return error instanceof Error ? encoded.exec(error.message)?.[1] : undefined;
}
