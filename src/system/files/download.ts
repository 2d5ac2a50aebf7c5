import { open, rm, stat } from "node:fs/promises";
import { ClusterError, messageOf, systemReason } from "../../errors.ts";
import { errorCode, freeSpaceProblem, isDiskFull, writeAll } from "./private-file.ts";
import { networkFailure } from "../network-failure.ts";
import { RefusedAnswer, bodyLength, isEncoded, requestFile } from "../network.ts";
import { throughProxy } from "../proxy.ts";
import { retry } from "../retry.ts";
import type { Clock } from "../runtime.ts";
import { type Watchdog, watchdog } from "../time-limit.ts";
import { waits } from "../waits.ts";

/** A file on the web, and the errors for what goes wrong with it. */
export interface WebFile {
  readonly url: string;
  readonly failed: (failure: WebFailure) => ClusterError;
}

/** Why a file can't be read. Advice depends on who is the cause. */
export interface WebFailure {
  readonly cause: "network" | "certificate" | "redirect" | "status" | "size" | "transfer";
  /** A sentence that begins in lower case. It contains nothing of the URL. */
  readonly reason: string;
  readonly transient?: boolean;
  readonly facts?: { readonly status?: number; readonly code?: string };
}

/** The part of a file that a server sends. */
export interface FilePart {
  /** Position of its first byte in the file. */
  readonly offset: number;
  /** Size of the whole file; undefined if the server doesn't send it. */
  readonly totalBytes: number | undefined;
  /** Identifies this exact file in a later request for the rest; undefined if the server sends nothing reliable. */
  readonly validator: string | undefined;
  /** Leaving the loop ends the transfer. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Whether the server encodes the file, so that no other part continues this one. */
  readonly isEncoded: boolean;
}

interface Wanted {
  readonly from: number;
  /** The last byte. Absent: all that follow. */
  readonly to?: number;
  /** If the file has another validator by now, the server sends all of it. */
  readonly validator?: string | undefined;
}

/**
 * Requests a file from this byte on. The server may send all of it instead. Resolves with
 * `undefined` if the file has no such byte.
 */
export async function requestPart(
  file: WebFile,
  { from, to, validator }: Wanted,
  signal: AbortSignal,
): Promise<FilePart | undefined> {
  const isPart = from > 0 || to !== undefined;
  const headers = {
    ...(isPart && { range: `bytes=${from}-${to ?? ""}` }),
    ...(isPart && validator !== undefined && { "if-range": validator }),
  };
  const response = await requestFile(file.url, headers, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    throw file.failed(requestFailure(error));
  });
  const part = readPart(response);
  if (!("reason" in part) && (part.offset === 0 || part.offset === from))
    return { ...part, body: bodyOf(file, response, signal) };
  await response.body?.cancel();
  if (isPart && response.status === 416) return undefined;
  throw file.failed("reason" in part ? withProxy(part, file) : otherPart);
}

const otherPart: WebFailure = {
  cause: "transfer",
  reason: "the server sent a different part than requested.",
};

/** Reads which part of the file an answer holds. */
export function readPart(response: Response): Omit<FilePart, "body"> | WebFailure {
  const { headers, status } = response;
  if (status !== 200 && status !== 206) return answerFailure(status);
  const entityTag = headers.get("etag");
  const known = {
    validator:
      (entityTag?.startsWith('"') === true ? entityTag : headers.get("last-modified")) ?? undefined,
    isEncoded: isEncoded(response),
  };
  if (status === 200) return { offset: 0, totalBytes: bodyLength(response), ...known };
  const [, offset, total] =
    /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range") ?? "") ?? [];
  if (offset === undefined)
    return {
      cause: "transfer",
      reason: "the server sent part of it without a Content-Range header.",
    };
  return {
    offset: Number(offset),
    totalBytes: total === "*" ? undefined : Number(total),
    ...known,
  };
}

/** Reasons for answers that hold nothing of the file. */
const answers: Readonly<Record<number, string>> = {
  401: "the server requires a login",
  403: "the server denies access",
  404: "the server has no such file",
  410: "the server no longer has the file",
};

export const answerFailure = (status: number): WebFailure => ({
  cause: "status",
  reason: `${answers[status] ?? (status >= 500 ? "the server failed" : "the server answered")} (HTTP ${status}).`,
  transient: status >= 500 || status === 408 || status === 425 || status === 429,
  facts: { status },
});

/** Where a proxy may have answered in the server's place, the reason names it. */
function withProxy(failure: WebFailure, { url }: WebFile): WebFailure {
  if (failure.cause !== "status") return failure;
  return { ...failure, reason: `${failure.reason.slice(0, -1)}${throughProxy(new URL(url))}.` };
}

function requestFailure(error: unknown): WebFailure {
  if (error instanceof RefusedAnswer) return { cause: "redirect", reason: messageOf(error) };
  const { code, reason, transient, isTls } = networkFailure(error);
  const cause = isTls ? "certificate" : "network";
  return { cause, reason: `${reason} (${code}).`, transient, facts: { code } };
}

async function* bodyOf(
  file: WebFile,
  { body }: Response,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  try {
    yield* body;
  } catch (error) {
    signal.throwIfAborted();
    throw file.failed(requestFailure(error));
  }
}

export interface Download extends WebFile {
  /** The download continues where this file ends. */
  readonly path: string;
  /**
   * Whether the caller compares the whole file's checksum, so that a part of unknown age is
   * continued too. Otherwise the server must show that the rest belongs to the same file as the
   * part.
   */
  readonly hasChecksum: boolean;
  readonly clock: Clock;
  /** Clock time after which no further try begins; absent: only their number is limited. */
  readonly deadlineMs?: number;
  /** Milliseconds without a single byte after which a transfer counts as interrupted. */
  readonly stallLimitMs: number;
  /** See `mostBytes` in network.ts. */
  readonly mostBytes: number;
  readonly space: DiskSpace;
  readonly onProgress: (receivedBytes: number, totalBytes: number | undefined) => void;
}

/** The folder that is named if its disk is full, and what to do then. */
export interface DiskSpace {
  readonly folder: string;
  readonly hint: string;
}

/**
 * Downloads a file from the web, and resumes after every interruption. The received part is kept,
 * even if the download fails, unless the server sends too much. Throws the file's errors, and
 * `machine-not-set-up` if the disk has no space.
 */
export async function resumeDownload(download: Download, signal: AbortSignal): Promise<void> {
  const { path, clock, deadlineMs = Infinity } = download;
  const known: KnownFile = { validator: undefined };
  const rule = { ...waits.download, clock, deadlineMs };
  try {
    await retry((inner) => tryDownload(download, known, inner), rule, signal);
  } catch (error) {
    // There is nothing to resume.
    if ((await stat(path).catch(() => undefined))?.size === 0) await rm(path, { force: true });
    throw error;
  }
}

/** What earlier tries have learned. */
interface KnownFile {
  validator: string | undefined;
}

async function tryDownload(
  download: Download,
  known: KnownFile,
  signal: AbortSignal,
): Promise<void> {
  using limit = watchdog(download.stallLimitMs, signal);
  try {
    await using file = await open(download.path, "a", 0o600);
    const { size } = await file.stat();
    const { validator } = known;
    const from = download.hasChecksum || validator !== undefined ? size : 0;
    const part = await requestPart(download, { from, validator }, limit.signal);
    if (part === undefined) {
      // Nothing follows: either the whole file was already there, or the local file is longer. The
      // checksum will show which.
      if (download.hasChecksum) return;
      known.validator = undefined;
      const reason = "the server refuses to resume the transfer.";
      throw download.failed({ cause: "transfer", reason, transient: true });
    }
    if (!download.hasChecksum) known.validator = part.validator;
    if (size > part.offset) await file.truncate(part.offset);
    try {
      await receive(download, part, { file, limit });
    } catch (error) {
      if (part.isEncoded) await file.truncate(0);
      throw error;
    }
  } catch (error) {
    if (isDiskFull(error)) throw diskFull(download.space);
    if (isFileFailure(error))
      throw cannotWrite(download.space, `Cannot write ${download.path}: ${systemReason(error)}.`);
    if (!limit.hasExpired()) throw error;
    const reason = `no data arrived for ${download.stallLimitMs / 1000} s.`;
    throw download.failed({ cause: "transfer", reason, transient: true });
  }
}

async function receive(
  download: Download,
  { offset, totalBytes, body }: FilePart,
  { file, limit }: { readonly file: Parameters<typeof writeAll>[0]; readonly limit: Watchdog },
): Promise<void> {
  const lack = await freeSpaceProblem(download.space.folder, (totalBytes ?? 0) - offset);
  if (lack !== undefined) throw cannotWrite(download.space, lack);
  const most = Math.min(totalBytes ?? Infinity, download.mostBytes);
  const received = { bytes: offset };
  for await (const chunk of body) {
    limit.feed();
    received.bytes += chunk.length;
    if (Math.max(received.bytes, totalBytes ?? 0) > most) {
      // Resuming such a download would only fill the disk.
      await rm(download.path, { force: true });
      throw download.failed({
        cause: "size",
        reason: `the server sends more than ${most} bytes.`,
      });
    }
    await writeAll(file, chunk);
    download.onProgress(received.bytes, totalBytes);
  }
  if (totalBytes === undefined || received.bytes === totalBytes) return;
  const reason = `the transfer ended after ${received.bytes} of ${totalBytes} bytes.`;
  throw download.failed({ cause: "transfer", reason, transient: true });
}

/** Whether the system refuses to open or change the file. All that the network does has other errors by now. */
const isFileFailure = (error: unknown): boolean =>
  !(error instanceof ClusterError) && errorCode(error)?.startsWith("E") === true;

export const diskFull = (space: DiskSpace): ClusterError =>
  cannotWrite(space, `${space.folder} is full.`);

const cannotWrite = ({ hint }: DiskSpace, problem: string): ClusterError =>
  new ClusterError("machine-not-set-up", problem, { hint });
