import { isIP } from "node:net";
import { OwnError } from "../errors.ts";
import { outside } from "../outside-text.ts";
import { answeringAddress, atAddress } from "./answering-address.ts";
import { decoded, maskUrl } from "./mask-url.ts";
import { outsideLine } from "./printable.ts";
import { ProxiedFailure, proxyRefusal } from "./network-failure.ts";
import { throughProxy, usedProxy } from "./proxy.ts";

const mostRedirects = 10;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** An answer that isn't used. The message is the reason: a sentence that begins in lower case, without secrets. */
export class RefusedAnswer extends OwnError {
  override readonly name = "RefusedAnswer";
}

/**
 * Requests a file and resolves with the answer, its body unread. It follows redirects itself,
 * because the runtime would follow one from https to http and back without a word. Sends the URL's
 * user part, and only to the URL's own origin. If the server encodes the file although it is asked
 * not to, asks for all of it instead of a part, and the runtime decodes it. Rejects with
 * `RefusedAnswer`, or with the runtime's error.
 */
export async function requestFile(
  start: string,
  range: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  const response = await follow(start, range, signal);
  const encoding = encodingOf(response);
  if (encoding === undefined || (response.status !== 200 && response.status !== 206))
    return response;
  const isKnown = decodedEncodings.has(encoding);
  if (isKnown && !("range" in range) && response.status === 200) return response;
  await response.body?.cancel();
  if (isKnown && "range" in range) return requestFile(start, {}, signal);
  throw new RefusedAnswer(
    `the server encodes the file as ${outsideLine(encoding)} although it was asked not to.`,
  );
}

async function follow(
  start: string,
  range: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  const first = new URL(start);
  let url = first;
  for (let redirects = 0; redirects <= mostRedirects; redirects += 1) {
    const bare = new URL(url);
    bare.username = "";
    bare.password = "";
    const login = url.origin === first.origin ? authorization(first) : {};
    // A compressed answer has another length than the file, and could not be resumed.
    const headers = { ...range, ...login, "accept-encoding": "identity" };
    // A part that is encoded can't be decoded: Bun would reject, and the headers would be lost.
    // Node has no such option, and needs none.
    const decompress = !("range" in range);
    const response = await fetchFrom(bare, { headers, redirect: "manual", decompress }, signal);
    if (response.status === 407)
      throw new RefusedAnswer(`${proxyRefusal(407).reason}${throughProxy(bare)}.`);
    const target = response.headers.get("location");
    if (!redirectStatuses.has(response.status) || target === null) return response;
    await response.body?.cancel();
    url = redirected(url, target);
  }
  throw new RefusedAnswer(`the server redirects more than ${mostRedirects} times.`);
}

interface FetchOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly redirect: "manual";
  readonly decompress: boolean;
}

async function fetchFrom(url: URL, options: FetchOptions, signal: AbortSignal): Promise<Response> {
  const proxy = usedProxy(url);
  const address = proxy === undefined ? await answeringAddress(url, signal) : undefined;
  const { href, headers, own } = atAddress(url, address);
  try {
    const all = { ...options.headers, ...headers };
    return await fetch(href, { ...options, ...own, headers: all, signal });
  } catch (error) {
    throw proxy === undefined ? error : new ProxiedFailure(proxy, { cause: error });
  }
}

/** Whether a plain http request to this URL stays on this computer, so that nobody on the way can change the answer. */
export function isLoopback({ hostname }: URL): boolean {
  return (
    hostname === "localhost" ||
    hostname === "[::1]" ||
    (isIP(hostname) === 4 && hostname.startsWith("127."))
  );
}

/** Those that both Bun and Node decode. */
const decodedEncodings: ReadonlySet<string> = new Set(["gzip", "x-gzip", "deflate", "br"]);

/** Undefined if the body is the file as it is. */
function encodingOf({ headers }: Response): string | undefined {
  const encoding = headers.get("content-encoding")?.toLowerCase() ?? "";
  return encoding === "" || encoding === "identity" ? undefined : encoding;
}

export const isEncoded = (response: Response): boolean => encodingOf(response) !== undefined;

/**
 * Size of a body as it is read. Undefined if it isn't known: where the server encodes the file, the
 * header counts the encoded bytes.
 */
export function bodyLength(response: Response): number | undefined {
  const length = response.headers.get("content-length");
  return length === null || isEncoded(response) ? undefined : Number(length);
}

function redirected(from: URL, target: string): URL {
  const url = URL.parse(target, from.href);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new RefusedAnswer(`the server redirects to an invalid URL: ${outside(maskUrl(target))}.`);
  if (from.protocol === "https:" && url.protocol === "http:")
    throw new RefusedAnswer(
      `the server redirects from https to the insecure ${outside(maskUrl(url))}.`,
    );
  // From another computer, plain http requires a checksum, which the caller of the first URL did not need.
  if (url.protocol === "http:" && isLoopback(from) && !isLoopback(url))
    throw new RefusedAnswer(
      `the server redirects from this computer to the insecure ${outside(maskUrl(url))}.`,
    );
  return url;
}

function authorization(url: URL): Record<string, string> {
  if (url.username === "" && url.password === "") return {};
  const user = `${decoded(url.username)}:${decoded(url.password)}`;
  return { authorization: `Basic ${Buffer.from(user).toString("base64")}` };
}

const gibibyte = 1024 ** 3;

/** The largest files that are downloaded. A server that sends more is broken or hostile, and would fill the disk. */
export const mostBytes = {
  /** The releases of DC/OS have up to 2 GB. */
  artifact: 32 * gibibyte,
  /** Published images have up to 3 GB; one of the user's own, with all its data and not compressed, has tens. */
  image: 128 * gibibyte,
  /** The disks and the memory of a hundred machines, compressed, have a quarter of it. */
  clusterFile: 512 * gibibyte,
} as const;
