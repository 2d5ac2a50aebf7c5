import type { FileHandle } from "node:fs/promises";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { ClusterError } from "../../errors.ts";
import type { Clock } from "../../system/runtime.ts";
import { errorCode } from "../../system/error-code.ts";
import { freeSpaceProblem } from "../../system/files/free-space.ts";
import { retry } from "../../system/retry.ts";
import { watchdog, type Watchdog } from "../../system/time-limit.ts";
import { answerBody, answerExtent } from "./artifact-answer.ts";
import { artifactUnreachable } from "./artifact-failure.ts";
import type { WebLocation } from "./artifact-request.ts";
import { requestArtifact } from "./artifact-request.ts";
import { waits } from "../../system/waits.ts";

export interface TransferRequest {
  readonly clock: Clock;
  /** Clock time after which no further try begins. */
  readonly deadlineMs: number;
  /** Milliseconds without a single byte after which a transfer counts as cut off. */
  readonly stallLimitMs: number;
  readonly onProgress: (receivedBytes: number, totalBytes: number | undefined) => void;
}

/** Disk space required if the artifact's size is unknown. */
const artifactSpaceBytes = 2e9;

/** Downloads a file. An interrupted transfer resumes where it stopped if the server can guarantee that the file is the same. */
export async function transferArtifact(
  location: WebLocation,
  path: string,
  request: TransferRequest,
  signal: AbortSignal,
): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  const draft: Draft = { file, path, location, receivedBytes: 0, validator: undefined };
  const rule = { ...waits.download, clock: request.clock, deadlineMs: request.deadlineMs };
  await retry((inner) => tryTransfer(draft, request, inner), rule, signal);
}

/** The part of the file received so far, kept between tries. */
interface Draft {
  readonly file: FileHandle;
  readonly path: string;
  readonly location: WebLocation;
  receivedBytes: number;
  validator: string | undefined;
}

async function tryTransfer(draft: Draft, request: TransferRequest, signal: AbortSignal): Promise<void> {
  using limit = watchdog(request.stallLimitMs, signal);
  const { shown } = draft.location;
  try {
    const response = await requestArtifact(draft.location, resumeHeaders(draft), limit.signal);
    const totalBytes = await placeAnswer(draft, response);
    await take(draft, answerBody(response, shown, limit.signal), { limit, totalBytes, onProgress: request.onProgress });
  } catch (error) {
    if (!limit.hasExpired()) throw error;
    throw artifactUnreachable(shown, `no data arrived for ${request.stallLimitMs / 1000} s.`, { transient: true });
  }
}

function resumeHeaders({ receivedBytes, validator }: Draft): Record<string, string> {
  // Without a validator, the rest could belong to another file than the beginning.
  return receivedBytes === 0 || validator === undefined
    ? {}
    : { range: `bytes=${receivedBytes}-`, "if-range": validator };
}

/** Truncates the draft to where the answer's body begins. Resolves with the size of the whole file, if known. */
async function placeAnswer(draft: Draft, response: Response): Promise<number | undefined> {
  const { shown } = draft.location;
  if (response.status === 416) {
    draft.validator = undefined;
    throw artifactUnreachable(shown, "the server refuses to resume the transfer.", { transient: true });
  }
  const extent = answerExtent(response, shown);
  if (extent.offset !== 0 && extent.offset !== draft.receivedBytes) {
    throw artifactUnreachable(shown, "the server sent a different part than requested.", {});
  }
  draft.receivedBytes = extent.offset;
  draft.validator = extent.validator;
  await draft.file.truncate(extent.offset);
  await assertSpace(draft, extent.totalBytes);
  return extent.totalBytes;
}

async function assertSpace(draft: Draft, totalBytes: number | undefined): Promise<void> {
  const needed = totalBytes === undefined ? artifactSpaceBytes : totalBytes * 1.1 - draft.receivedBytes;
  const problem = await freeSpaceProblem(dirname(dirname(draft.path)), needed);
  if (problem !== undefined) throw noSpace(problem);
}

interface Taking {
  readonly limit: Watchdog;
  readonly totalBytes: number | undefined;
  readonly onProgress: TransferRequest["onProgress"];
}

async function take(
  draft: Draft,
  body: AsyncIterable<Uint8Array>,
  { limit, totalBytes, onProgress }: Taking,
): Promise<void> {
  for await (const chunk of body) {
    limit.feed();
    await write(draft, chunk);
    onProgress(draft.receivedBytes, totalBytes);
  }
  if (totalBytes === undefined || draft.receivedBytes === totalBytes) return;
  const reason = `the transfer ended after ${draft.receivedBytes} of ${totalBytes} bytes.`;
  throw artifactUnreachable(draft.location.shown, reason, { transient: true });
}

async function write(draft: Draft, chunk: Uint8Array): Promise<void> {
  try {
    for (let offset = 0; offset < chunk.length;) {
      const { bytesWritten } = await draft.file.write(chunk, offset, chunk.length - offset, draft.receivedBytes);
      offset += bytesWritten;
      draft.receivedBytes += bytesWritten;
    }
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOSPC" || code === "EDQUOT") throw noSpace(`${dirname(dirname(draft.path))} is full (${code}).`);
    throw error;
  }
}

const noSpace = (problem: string): ClusterError =>
  new ClusterError("machine-not-set-up", problem, {
    hint: "Free some space there, or set `workspaceDir` to another folder.",
  });
