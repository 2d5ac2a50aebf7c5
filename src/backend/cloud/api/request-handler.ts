import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { EC2Client } from "@aws-sdk/client-ec2";
import { answeringAddress, atAddress } from "../../../system/answering-address.ts";
import { TooLong, readBody } from "../../../system/files/read-text.ts";
import {
  type NetworkFailure,
  networkFailure,
  proxyRefusal,
} from "../../../system/network-failure.ts";
import type { Action, Calls } from "./api.ts";

/** The limit for one attempt, headers and body. The SDK retries after it. */
const requestTimeoutMs = 20_000;

/** A failure on the way to the API or back, in words for users. Its code tells the SDK whether to retry. */
class RequestFailed extends Error {
  override readonly name = "RequestFailed";
  readonly code: string;

  constructor({ code, reason }: Pick<NetworkFailure, "code" | "reason">, cause?: unknown) {
    super(`${reason} (${code})`, { cause });
    this.code = code;
  }
}

/**
 * Returns a fetch for the SDK's fetch handler. It honours the proxy variables, which the SDK's usual handler doesn't.
 * It limits the time of each attempt and ends the request itself then; the handler's own limit would leave the request
 * under way, which keeps the process alive. `judge` sees each response first, and may replace it or throw.
 */
export function boundedFetch(
  authorities: string | undefined,
  judge: (response: Response) => Response | Promise<Response>,
  isDirect: (url: URL) => boolean = () => false,
): typeof fetch {
  const ca = authorities === undefined ? {} : { ca: authorities };
  const addresses = new Map<string, Promise<string | undefined>>();
  const bounded = async (
    request: Parameters<typeof fetch>[0],
    init?: RequestInit,
  ): Promise<Response> => {
    const given = [request instanceof Request ? request.signal : undefined, init?.signal];
    const left = AbortSignal.any(given.filter((candidate) => candidate instanceof AbortSignal));
    const signal = AbortSignal.any([left, AbortSignal.timeout(requestTimeoutMs)]);
    try {
      const url = new URL(request instanceof Request ? request.url : request);
      if (isDirect(url) && !addresses.has(url.host))
        addresses.set(
          url.host,
          answeringAddress(url, signal).catch(() => undefined),
        );
      const address = await addresses.get(url.host);
      const { href, headers, own } = atAddress(url, address);
      const asked =
        address === undefined ? request : new Request(href, request as unknown as RequestInit);
      if (asked instanceof Request)
        for (const [name, value] of Object.entries(headers)) asked.headers.set(name, value);
      const options = { ...init, ...own, tls: { ...ca, ...own.tls }, signal };
      const response = await fetch(asked, options);
      if (response.status === 407 && !isDirect(url)) throw new RequestFailed(proxyRefusal(407));
      return await judge(response);
    } catch (error) {
      if (left.aborted || error instanceof UnreadableAnswer || error instanceof RequestFailed)
        throw error;
      throw new RequestFailed(networkFailure(error), error);
    }
  };
  return Object.assign(bounded, { preconnect: fetch.preconnect });
}

/** Credentials, in any form that a service has for them, take a hundredth of it. */
const mostIssuedBytes = 1024 * 1024;

/** Reads the answer of a service that issues credentials, whose form the SDK knows. Throws `TooLong`. */
export async function readIssued(response: Response): Promise<Response> {
  const { status, headers } = response;
  const text = await readBody(response, mostIssuedBytes);
  return new Response(text === "" ? null : text, { status, headers });
}

/** A page of 1,000 instances has 5 MB. */
const mostBytes = 32 * 1024 * 1024;

/**
 * Thrown when a response isn't a complete answer of EC2: it can't be read, or a required part is missing. The request
 * may have been carried out. The SDK sends it again, because of `$retryable`.
 */
export class UnreadableAnswer extends Error {
  override readonly name = "UnreadableAnswer";
  readonly code: string = "UnreadableAnswer";
  readonly $retryable = {};
}

/**
 * The code of an answer from EC2 that lacks a required part. A repeated request may well get the same, so `retryingApi`
 * doesn't retry it for minutes.
 */
export const incompleteAnswer = "IncompleteAnswer";

class IncompleteAnswer extends UnreadableAnswer {
  override readonly code = incompleteAnswer;
}

/**
 * Judges a response as it arrives. Only two kinds come from EC2: a success with the whole XML document of an action,
 * and a failure with EC2's own error. Anything else may come from a proxy, a captive portal or a broken server. The SDK
 * would read much of that as an empty answer or a refusal. Throws `TooLong` for a response that nobody should wait for.
 */
export async function judgeResponse(response: Response): Promise<Response> {
  const text = await readBody(response, mostBytes);
  const { status, headers } = response;
  const isReadable = response.ok ? isAnswer(text) : isFailure(text);
  if (!isReadable)
    throw new UnreadableAnswer(`${describeText(text)} came instead (HTTP ${status})`);
  return new Response(text, { status: isFalseFault(status, text) ? 400 : status, headers });
}

const rootElement = /^\uFEFF?\s*(?:<\?xml[^>]*\?>\s*)?<(\w+)(?=[\s/>])[^>]*>/;

/** Whether the text is `<SomeActionResponse …> … </SomeActionResponse>`. */
function isAnswer(text: string): boolean {
  const root = rootElement.exec(text)?.[1];
  return (
    root !== undefined && root.endsWith("Response") && root !== "Response" && endsWith(text, root)
  );
}

function isFailure(text: string): boolean {
  return (
    rootElement.exec(text)?.[1] === "Response" &&
    endsWith(text, "Response") &&
    /<Code>[\w.]+<\/Code>/.test(text)
  );
}

const endsWith = (text: string, root: string): boolean => text.trimEnd().endsWith(`</${root}>`);

/**
 * EC2 reports a lack of capacity as if it were its own fault (500), so the SDK would keep retrying. It is a refusal.
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html#api-error-codes-table-server
 */
const isFalseFault = (status: number, text: string): boolean =>
  status === 500 && /<Code>(?:Insufficient\w+|Unsupported)<\/Code>/.test(text);

function describeText(text: string): string {
  if (text.trim() === "") return "an empty answer";
  if (/^\s*<(?:!doctype\s+)?html/i.test(text))
    return "a web page, perhaps of a proxy or a login portal,";
  return rootElement.test(text)
    ? "an incomplete or foreign document"
    : "something that is not the API's";
}

/** Checks that an answer contains the parts that are required. Each returns what is missing. */
const judges: {
  readonly [Name in Action]: (
    answer: Calls[Name]["output"],
    input: Calls[Name]["input"],
  ) => Missing;
} = {
  AuthorizeSecurityGroupIngress: ({ Return }) => without(Return, "its confirmation"),
  CreateSecurityGroup: ({ GroupId }) => without(GroupId, "the group's id"),
  DeleteSecurityGroup: ({ Return }) => without(Return, "its confirmation"),
  DescribeImages: ({ Images }) => without(Images, "the images"),
  DescribeInstances: ({ Reservations }) => without(Reservations, "the instances"),
  DescribeInstanceTypeOfferings: ({ InstanceTypeOfferings }) =>
    without(InstanceTypeOfferings, "the offers"),
  DescribeInstanceTypes: ({ InstanceTypes }) => without(InstanceTypes, "the instance types"),
  DescribeRegions: ({ Regions }) => without(Regions, "the regions"),
  DescribeSecurityGroups: ({ SecurityGroups }) => without(SecurityGroups, "the groups"),
  DescribeSubnets: ({ Subnets }) => without(Subnets, "the subnets"),
  GetConsoleOutput: ({ InstanceId }) => without(InstanceId, "the instance"),
  ModifyInstanceMetadataOptions: ({ InstanceId }) => without(InstanceId, "the instance"),
  RevokeSecurityGroupIngress: ({ Return }) => without(Return, "its confirmation"),
  RunInstances: ({ Instances = [] }, { MinCount = 1 }) => {
    const count = Instances.filter(({ InstanceId }) => (InstanceId ?? "") !== "").length;
    return count < MinCount ? `${MinCount - count} of ${MinCount} instances` : undefined;
  },
  TerminateInstances: ({ TerminatingInstances = [] }, { InstanceIds = [] }) => {
    const ending = new Set(TerminatingInstances.map(({ InstanceId }) => InstanceId));
    return InstanceIds.filter((id) => !ending.has(id)).join(", ") || undefined;
  },
};

type Missing = string | undefined;

const without = (part: unknown, name: string): Missing =>
  part === undefined || part === "" ? name : undefined;

/** Makes the client judge every answer to these actions while it can still retry the request. */
export function judgeAnswers(client: EC2Client): void {
  client.middlewareStack.add(
    (next, { commandName = "" }) =>
      async (handled) => {
        const result = await next(handled).catch((error: unknown) => {
          throw isUnparsed(error)
            ? new UnreadableAnswer("a malformed document came instead", { cause: error })
            : error;
        });
        const action = commandName.replace(/Command$/, "");
        const missing = isAction(action)
          ? judgeOutput(action, result.output, handled.input)
          : undefined;
        if (missing !== undefined) throw new IncompleteAnswer(`its answer lacks ${missing}`);
        return result;
      },
    // Runs inside the retries, but outside the parser.
    { step: "deserialize", priority: "high", name: "judgeAnswers" },
  );
}

/** A failure of the SDK's parser carries the response, like the API's own errors, but no `$fault`. */
const isUnparsed = (error: unknown): boolean =>
  error instanceof Error &&
  "$response" in error &&
  error.$response !== undefined &&
  !("$fault" in error);

const isAction = (name: string): name is Action => Object.hasOwn(judges, name);

function judgeOutput(action: Action, output: unknown, input: unknown): Missing {
  const judgeOne = judges[action] as (output: unknown, input: unknown) => Missing;
  return judgeOne(output, input);
}

interface DirectRequest {
  readonly url: URL;
  readonly method: "GET" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Whether the server is asked over IPv4 only. */
  readonly overIpv4?: true;
}

/** These answers are an address, or a few facts. */
const mostDirectBytes = 64 * 1024;

/**
 * Sends a request without a proxy. Through a proxy, the answers (this machine's own address, its
 * own metadata) would be the proxy's. Bun's fetch always reads the proxy variables; its node:http
 * doesn't.
 */
export async function requestDirectly(
  request: DirectRequest,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly text: string }> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(request.timeoutMs)]);
  const send = request.url.protocol === "https:" ? httpsRequest : httpRequest;
  return await new Promise((resolve, reject) => {
    // After an abort, the error doesn't say that the time was over.
    const fail = (error: Error): void => reject(bounded.aborted ? bounded.reason : error);
    const options = {
      method: request.method,
      headers: request.headers,
      agent: false,
      signal: bounded,
    } as const;
    const family = request.overIpv4 === undefined ? {} : { family: 4 };
    const sent = send(request.url, { ...options, ...family }, (response) => {
      const chunks: Buffer[] = [];
      const received = { bytes: 0 };
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        received.bytes += chunk.length;
        if (received.bytes > mostDirectBytes) sent.destroy(new TooLong(mostDirectBytes));
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
      );
      response.on("error", fail);
    });
    sent.on("error", fail);
    sent.end();
  });
}
