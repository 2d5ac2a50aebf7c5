import { open } from "node:fs/promises";
import { ClusterError, type ErrorId } from "../../errors.ts";
import type { Clock } from "../runtime.ts";
import { errorCode } from "./private-file.ts";
import { networkFailure } from "../network-failure.ts";
import { retry } from "../retry.ts";
import { watchdog, type Watchdog } from "../time-limit.ts";
import { ruleOf, waits } from "../waits.ts";
import { RefusedRedirect, requestFile } from "./request-file.ts";

export interface Download {
  readonly url: string;
  /** The download continues where this file ends. Only the hash shows whether all of it is from one version. */
  readonly path: string;
  readonly clock: Clock;
  /** Milliseconds without a single byte after which a transfer counts as interrupted. */
  readonly stallLimitMs: number;
  readonly onProgress: (receivedBytes: number, totalBytes: number | undefined) => void;
  /** The URL as people and logs may see it. */
  readonly shown: string;
  /** The error id and hint of a failed download. */
  readonly failure: { readonly id: ErrorId; readonly hint: string };
}

/** Downloads a file from the web, and resumes after every interruption. The received part is kept, even if the download fails. */
export async function resumeDownload(download: Download, signal: AbortSignal): Promise<void> {
  await retry((inner) => tryDownload(download, inner), ruleOf(waits.download, download.clock), signal);
}

async function tryDownload(download: Download, signal: AbortSignal): Promise<void> {
  using limit = watchdog(download.stallLimitMs, signal);
  try {
    await using file = await open(download.path, "a", 0o600);
    const { size } = await file.stat();
    const response = await request(download, size, limit.signal);
    const isRest = response.status === 206;
    if (!isRest) await file.truncate(0);
    await receive(download, { file, response, startBytes: isRest ? size : 0, limit });
  } catch (error) {
    signal.throwIfAborted();
    if (limit.hasExpired()) throw failed(download, `no data arrived for ${download.stallLimitMs / 1000} s.`, true);
    throw explained(download, error);
  }
}

async function request(download: Download, size: number, signal: AbortSignal): Promise<Response> {
  const response = await requestFile(download.url, size > 0 ? { range: `bytes=${size}-` } : {}, signal);
  // Nothing follows: either the whole file was already there, or the local file is longer. The hash will show which.
  if (response.status === 416 && size > 0) return new Response("", { status: 206 });
  if (response.ok) return response;
  await response.body?.cancel();
  const isTransient = response.status >= 500 || response.status === 408 || response.status === 429;
  throw failed(download, `the server answered with HTTP ${response.status}.`, isTransient);
}

interface Receiving {
  readonly file: { appendFile(data: Uint8Array): Promise<void> };
  readonly response: Response;
  readonly startBytes: number;
  readonly limit: Watchdog;
}

async function receive(download: Download, { file, response, startBytes, limit }: Receiving): Promise<void> {
  const length = response.headers.get("content-length");
  const totalBytes = length === null ? undefined : startBytes + Number(length);
  const body: AsyncIterable<Uint8Array> = response.body ?? (async function* () {})();
  const received = { bytes: startBytes };
  for await (const chunk of body) {
    limit.feed();
    await file.appendFile(chunk);
    received.bytes += chunk.length;
    download.onProgress(received.bytes, totalBytes);
  }
  if (totalBytes === undefined || received.bytes === totalBytes) return;
  throw failed(download, `the transfer ended after ${received.bytes} of ${totalBytes} bytes.`, true);
}

function explained(download: Download, error: unknown): unknown {
  if (error instanceof ClusterError) return error;
  if (error instanceof RefusedRedirect) return failed(download, error.message, false);
  const code = errorCode(error);
  if (code === "ENOSPC" || code === "EDQUOT") {
    return new ClusterError("machine-not-set-up", `The disk is full: ${download.path} (${code}).`, {
      hint: "Free some space, or set XDG_CACHE_HOME to another folder.",
    });
  }
  const { reason, code: shown, transient } = networkFailure(error);
  return failed(download, `${reason} (${shown}).`, transient);
}

function failed({ shown, failure }: Download, reason: string, transient: boolean): ClusterError {
  return new ClusterError(failure.id, `Cannot download ${shown}: ${reason}`, {
    hint: failure.hint,
    transient,
    facts: { url: shown },
  });
}
