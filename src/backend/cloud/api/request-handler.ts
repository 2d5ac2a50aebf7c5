import { readFile } from "node:fs/promises";
import { ClusterError } from "../../../errors.ts";
import type { Environment } from "../../../system/environment.ts";

/** For one request, headers and body; the SDK asks again after it. */
export const requestTimeoutMs = 20_000;

/**
 * A fetch for the SDK's fetch handler, which honours the proxy variables (the SDK's usual handler doesn't). The handler's own time limit only
 * rejects, while the request goes on and keeps the process alive: here the request itself is ended.
 */
export function boundedFetch(authorities: string | undefined, onAnswer: (response: Response) => void): typeof fetch {
  const options = authorities === undefined ? {} : { tls: { ca: authorities } };
  const bounded = async (request: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> => {
    const signals = [
      request instanceof Request ? request.signal : undefined,
      init?.signal,
      AbortSignal.timeout(requestTimeoutMs),
    ];
    const signal = AbortSignal.any(signals.filter((candidate) => candidate instanceof AbortSignal));
    const response = await withoutFalseFaults(await fetch(request, { ...init, ...options, signal }));
    onAnswer(response);
    return response;
  };
  return Object.assign(bounded, { preconnect: fetch.preconnect });
}

/**
 * EC2 answers a lack of room as if it were a fault of its own (500), for which the SDK would go on asking. It is a plain no, so it is turned into
 * one. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html#api-error-codes-table-server
 */
async function withoutFalseFaults(response: Response): Promise<Response> {
  if (response.status !== 500) return response;
  const text = await response.text();
  const status = /<Code>(?:Insufficient\w+|Unsupported)<\/Code>/.test(text) ? 400 : response.status;
  return new Response(text, { status, headers: response.headers });
}

/** The text of the certificate authorities in `AWS_CA_BUNDLE`, which the SDK doesn't read by itself. */
export async function certificateAuthorities(environment: Environment): Promise<string | undefined> {
  const path = environment["AWS_CA_BUNDLE"];
  if (path === undefined || path === "") return undefined;
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new ClusterError("machine-not-set-up", `The file that AWS_CA_BUNDLE names, ${path}, cannot be read.`, {
      hint: "Name a file of certificates in PEM form, or unset AWS_CA_BUNDLE.",
      cause: error,
    });
  }
}
