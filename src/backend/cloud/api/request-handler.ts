import { ClusterError } from "../../../errors.ts";
import type { Environment } from "../../../system/runtime.ts";
import { type NetworkFailure, networkFailure } from "../../../system/network-failure.ts";
import { UnreadableAnswer } from "./judge-answer.ts";
import { readOwnText } from "../../../system/files/read-text.ts";

/** The limit for one attempt, headers and body. The SDK retries after it. */
const requestTimeoutMs = 20_000;

/** A failure on the way to the API or back, in words for users. Its code tells the SDK whether to retry. */
class RequestFailed extends Error {
  override readonly name = "RequestFailed";
  readonly code: string;

  constructor({ code, reason }: NetworkFailure, cause: unknown) {
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
): typeof fetch {
  const options = authorities === undefined ? {} : { tls: { ca: authorities } };
  const bounded = async (request: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> => {
    const given = [request instanceof Request ? request.signal : undefined, init?.signal];
    const left = AbortSignal.any(given.filter((candidate) => candidate instanceof AbortSignal));
    const signal = AbortSignal.any([left, AbortSignal.timeout(requestTimeoutMs)]);
    try {
      return await judge(await fetch(request, { ...init, ...options, signal }));
    } catch (error) {
      if (left.aborted || error instanceof UnreadableAnswer) throw error;
      throw new RequestFailed(networkFailure(error), error);
    }
  };
  return Object.assign(bounded, { preconnect: fetch.preconnect });
}

/** Returns the text of the certificate authorities in `AWS_CA_BUNDLE`, which the SDK doesn't read by itself. */
export async function certificateAuthorities(environment: Environment): Promise<string | undefined> {
  const path = environment["AWS_CA_BUNDLE"];
  if (path === undefined || path === "") return undefined;
  try {
    return await readOwnText(path);
  } catch (error) {
    throw new ClusterError("machine-not-set-up", `Cannot read ${path}, the file that AWS_CA_BUNDLE names.`, {
      hint: "Set AWS_CA_BUNDLE to a file of certificates in PEM format, or unset it.",
      cause: error,
    });
  }
}
