import { readFile } from "node:fs/promises";
import { ClusterError } from "../../../errors.ts";
import type { Environment } from "../../../system/environment.ts";

/** The limit for one request, headers and body. The SDK retries after it. */
export const requestTimeoutMs = 20_000;

/**
 * Returns a fetch for the SDK's fetch handler. It honours the proxy variables, which the SDK's usual handler doesn't. When the handler's own time
 * limit passes, it only rejects, while the request goes on and keeps the process alive; this fetch ends the request itself.
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
 * EC2 reports a lack of capacity as if it were its own fault (500), so the SDK would keep retrying. It is a refusal, so this turns it into one.
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html#api-error-codes-table-server
 */
async function withoutFalseFaults(response: Response): Promise<Response> {
  if (response.status !== 500) return response;
  const text = await response.text();
  const status = /<Code>(?:Insufficient\w+|Unsupported)<\/Code>/.test(text) ? 400 : response.status;
  return new Response(text, { status, headers: response.headers });
}

/** Returns the text of the certificate authorities in `AWS_CA_BUNDLE`, which the SDK doesn't read by itself. */
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
