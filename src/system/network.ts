import { open, rm, stat } from "node:fs/promises";
import { isIP } from "node:net";
import { ClusterError, type ErrorId, OwnError, messageOf } from "../errors.ts";
import { outside } from "../outside-text.ts";
import { answeringAddress, atAddress } from "./answering-address.ts";
import { errorCode } from "./files/private-file.ts";
import { decoded, maskUrl } from "./mask-url.ts";
import { outsideLine } from "./printable.ts";
import { ProxiedFailure, networkFailure, proxyRefusal } from "./network-failure.ts";
import { throughProxy, usedProxy } from "./proxy.ts";
import { retry } from "./retry.ts";
import type { Clock } from "./runtime.ts";
import { type Watchdog, watchdog } from "./time-limit.ts";
import { ruleOf, waits } from "./waits.ts";

const mostRedirects = 10;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** An answer that isn't used. The message is the reason: a sentence that begins in lower case, without secrets. */
export class RefusedAnswer extends OwnError {
  override readonly name = "RefusedAnswer";
}

/**
 * Requests a file and resolves with the answer, its body unread. It follows redirects itself, because the runtime would follow one from https to http
 * and back without a word. Sends the URL's user part, and only to the URL's own origin. If the server encodes the file although it is asked not to, asks
 * for all of it instead of a part, and the runtime decodes it. Rejects with `RefusedAnswer`, or with the runtime's error.
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
    // A part that is encoded can't be decoded: Bun would reject, and the headers would be lost. Node has no such option, and needs none.
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

/** Size of a body as it is read. Undefined if it isn't known: where the server encodes the file, the header counts the encoded bytes. */
export function bodyLength(response: Response): number | undefined {
  const length = response.headers.get("content-length");
  return length === null || encodingOf(response) !== undefined ? undefined : Number(length);
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

/** A server sends more than it has announced, or announces or sends more than such a file may have. */
export class SentTooMuch extends OwnError {
  override readonly name = "SentTooMuch";

  constructor(bytes: number) {
    super(`the server sends more than ${bytes} bytes.`);
  }
}

/** What is known about a file whose rest follows. */
interface Extent {
  readonly startBytes: number;
  /** As the server has announced it. */
  readonly totalBytes: number | undefined;
  readonly mostBytes: number;
}

/** Yields the same chunks. Throws `SentTooMuch` before the one that is too much. */
export async function* bounded(
  chunks: AsyncIterable<Uint8Array>,
  extent: Extent,
): AsyncGenerator<Uint8Array> {
  const { startBytes, totalBytes = 0 } = extent;
  const most = Math.min(extent.totalBytes ?? Infinity, extent.mostBytes);
  let bytes = startBytes;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (Math.max(bytes, totalBytes) > most) throw new SentTooMuch(most);
    yield chunk;
  }
}

export interface Download {
  readonly url: string;
  /** The download continues where this file ends. Only the hash shows whether all of it is from one version. */
  readonly path: string;
  readonly clock: Clock;
  /** Milliseconds without a single byte after which a transfer counts as interrupted. */
  readonly stallLimitMs: number;
  /** See `mostBytes`. */
  readonly mostBytes: number;
  readonly onProgress: (receivedBytes: number, totalBytes: number | undefined) => void;
  /** The URL as people and logs may see it. */
  readonly shown: string;
  /** The error id and hint of a failed download. */
  readonly failure: { readonly id: ErrorId; readonly hint: string };
}

/**
 * Downloads a file from the web, and resumes after every interruption. The received part is kept, even if the download fails, unless the server sends
 * too much.
 */
export async function resumeDownload(download: Download, signal: AbortSignal): Promise<void> {
  const { path, clock } = download;
  try {
    await retry((inner) => tryDownload(download, inner), ruleOf(waits.download, clock), signal);
  } catch (error) {
    // There is nothing to resume.
    if ((await stat(path).catch(() => undefined))?.size === 0) await rm(path, { force: true });
    throw error;
  }
}

async function tryDownload(download: Download, signal: AbortSignal): Promise<void> {
  using limit = watchdog(download.stallLimitMs, signal);
  try {
    await using file = await open(download.path, "a", 0o600);
    const { size } = await file.stat();
    const response = await request(download, size, limit.signal);
    const isRest = response.status === 206;
    if (!isRest) await file.truncate(0);
    try {
      await receive(download, { file, response, startBytes: isRest ? size : 0, limit });
      // The caller renames it. After a power cut, that name must not lead to less.
      await file.sync();
    } catch (error) {
      // A range would continue the encoded file, not this one.
      if (encodingOf(response) !== undefined) await file.truncate(0);
      throw error;
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SentTooMuch) throw await refused(download, error);
    if (limit.hasExpired())
      throw failed(download, `no data arrived for ${download.stallLimitMs / 1000} s.`, true);
    throw explained(download, error);
  }
}

async function request(download: Download, size: number, signal: AbortSignal): Promise<Response> {
  const response = await requestFile(
    download.url,
    size > 0 ? { range: `bytes=${size}-` } : {},
    signal,
  );
  // Nothing follows: either the whole file was already there, or the local file is longer. The hash will show which.
  if (response.status === 416 && size > 0) return new Response("", { status: 206 });
  if (response.ok) return response;
  await response.body?.cancel();
  const isTransient = response.status >= 500 || response.status === 408 || response.status === 429;
  throw failed(
    download,
    `the server answered with HTTP ${response.status}${throughProxy(new URL(download.url))}.`,
    isTransient,
  );
}

interface Receiving {
  readonly file: { appendFile(data: Uint8Array): Promise<void> };
  readonly response: Response;
  readonly startBytes: number;
  readonly limit: Watchdog;
}

async function receive(
  download: Download,
  { file, response, startBytes, limit }: Receiving,
): Promise<void> {
  const length = bodyLength(response);
  const totalBytes = length === undefined ? undefined : startBytes + length;
  const all: AsyncIterable<Uint8Array> = response.body ?? (async function* () {})();
  const body = bounded(all, { startBytes, totalBytes, mostBytes: download.mostBytes });
  const received = { bytes: startBytes };
  for await (const chunk of body) {
    limit.feed();
    await file.appendFile(chunk);
    received.bytes += chunk.length;
    download.onProgress(received.bytes, totalBytes);
  }
  if (totalBytes === undefined || received.bytes === totalBytes) return;
  throw failed(
    download,
    `the transfer ended after ${received.bytes} of ${totalBytes} bytes.`,
    true,
  );
}

function explained(download: Download, error: unknown): unknown {
  if (error instanceof ClusterError) return error;
  if (error instanceof RefusedAnswer) return failed(download, error.message, false);
  const code = errorCode(error);
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new ClusterError("machine-not-set-up", `The disk is full: ${download.path} (${code}).`, {
      hint: "Free some space, or set XDG_CACHE_HOME to another folder.",
    });
  }
  const { reason, code: shown, transient } = networkFailure(error);
  return failed(download, `${reason} (${shown}).`, transient);
}

/** Resuming such a download would only fill the disk. */
async function refused(
  { path, shown, failure }: Download,
  error: SentTooMuch,
): Promise<ClusterError> {
  await rm(path, { force: true });
  return new ClusterError(failure.id, `Cannot download ${shown}: ${messageOf(error)}`, {
    hint: "Check the URL, or download the file yourself and pass its path. What was received is deleted.",
    facts: { url: shown },
  });
}

function failed({ shown, failure }: Download, reason: string, transient: boolean): ClusterError {
  return new ClusterError(failure.id, `Cannot download ${shown}: ${reason}`, {
    hint: failure.hint,
    transient,
    facts: { url: shown },
  });
}
