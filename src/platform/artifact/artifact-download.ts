import { type FileHandle, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError, messageOf } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { type FileFacts, sha256OfListed } from "../../system/files/listed-file.ts";
import {
  errorCode,
  freeSpaceProblem,
  isDiskFull,
  writeAll,
} from "../../system/files/private-file.ts";
import { ownedFolder } from "../../system/files/owned-folder.ts";
import { SentTooMuch, bounded, mostBytes } from "../../system/network.ts";
import { retry } from "../../system/retry.ts";
import type { Clock } from "../../system/runtime.ts";
import { type Watchdog, watchdog } from "../../system/time-limit.ts";
import { waits } from "../../system/waits.ts";
import { writeArtifact } from "../folder/pack.ts";
import { parseHead, readFileStart } from "./artifact-head.ts";
import {
  type ArtifactLocation,
  type WebLocation,
  answerBody,
  answerExtent,
  artifactUnreachable,
  otherPart,
  requestArtifact,
} from "./artifact-request.ts";

/** An artifact as a file on this machine. Disposing of it removes a downloaded or packed file, but never the user's own. */
export interface LocalArtifact extends AsyncDisposable {
  readonly file: FileFacts;
}

export interface DownloadRequest extends TransferRequest {
  /** An existing folder. The download creates its own folder in it and removes that folder on disposal or failure. */
  readonly workspaceFolder: string;
  /** Hexadecimal, as `sha256sum` prints it; undefined: not checked. */
  readonly sha256: string | undefined;
}

/**
 * Downloads the artifact to this machine, or packs it; a local file stays where it is. Throws `artifact-unreachable`, `artifact-invalid` (not a script, or
 * a wrong checksum) or `machine-not-set-up` (no disk space).
 */
export async function downloadArtifact(
  location: ArtifactLocation,
  request: DownloadRequest,
  signal: AbortSignal,
): Promise<LocalArtifact> {
  if (location.kind === "file")
    return {
      file: await checked(location.path, location, request, signal),
      [Symbol.asyncDispose]: async () => {},
    };
  const folder = await ownedFolder(request.workspaceFolder);
  try {
    const path = join(folder.path, "artifact.sh");
    await (location.kind === "folder"
      ? writeArtifact(location.platform, path, signal).catch((error: unknown) =>
          throwFull(error, path),
        )
      : transferArtifact(location, path, request, signal));
    const file = await checked(path, location, request, signal);
    return { file, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
}

async function checked(
  path: string,
  location: ArtifactLocation,
  { sha256 }: DownloadRequest,
  signal: AbortSignal,
): Promise<FileFacts> {
  const start = await readFileStart(path);
  parseHead(start, location.shown);
  const file = location.kind === "file" && location.file !== undefined ? location.file : start.file;
  if (sha256 !== undefined) await assertSum({ file, shown: location.shown }, sha256, signal);
  return file;
}

export async function assertSum(
  { file, shown }: { readonly file: FileFacts; readonly shown: string },
  sha256: string,
  signal: AbortSignal,
): Promise<void> {
  const expected = sha256.toLowerCase();
  const actual = await sha256OfListed(file, signal);
  if (actual === expected) return;
  throw new ClusterError(
    "artifact-invalid",
    `The artifact ${shown} has the SHA-256 checksum ${actual}, not ${expected}.`,
    {
      hint: `Check ${optionName("artifactSha256")}, and whether ARTIFACT_URL is the intended release.`,
      facts: { artifact: shown, expectedSha256: expected, actualSha256: actual },
    },
  );
}

interface TransferRequest {
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
async function transferArtifact(
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

/** The part of the file that previous tries have received. */
interface Draft {
  readonly file: FileHandle;
  readonly path: string;
  readonly location: WebLocation;
  receivedBytes: number;
  validator: string | undefined;
}

async function tryTransfer(
  draft: Draft,
  request: TransferRequest,
  signal: AbortSignal,
): Promise<void> {
  using limit = watchdog(request.stallLimitMs, signal);
  const { shown } = draft.location;
  try {
    const response = await requestArtifact(draft.location, resumeHeaders(draft), limit.signal);
    const totalBytes = await placeAnswer(draft, response);
    const extent = { startBytes: draft.receivedBytes, totalBytes, mostBytes: mostBytes.artifact };
    const body = bounded(answerBody(response, shown, limit.signal), extent);
    await take(draft, body, { limit, totalBytes, onProgress: request.onProgress });
  } catch (error) {
    if (error instanceof SentTooMuch) throw artifactUnreachable(shown, messageOf(error), {});
    if (!limit.hasExpired()) throw error;
    throw artifactUnreachable(shown, `no data arrived for ${request.stallLimitMs / 1000} s.`, {
      transient: true,
    });
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
    throw artifactUnreachable(shown, "the server refuses to resume the transfer.", {
      transient: true,
    });
  }
  const extent = answerExtent(response, shown);
  if (extent.offset !== 0 && extent.offset !== draft.receivedBytes) throw otherPart(shown);
  draft.receivedBytes = extent.offset;
  draft.validator = extent.validator;
  await draft.file.truncate(extent.offset);
  await assertSpace(draft, extent.totalBytes);
  return extent.totalBytes;
}

async function assertSpace(draft: Draft, totalBytes: number | undefined): Promise<void> {
  const needed =
    totalBytes === undefined ? artifactSpaceBytes : totalBytes * 1.1 - draft.receivedBytes;
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
    await writeAll(draft.file, chunk, draft.receivedBytes);
    draft.receivedBytes += chunk.length;
  } catch (error) {
    throwFull(error, draft.path);
  }
}

function throwFull(error: unknown, path: string): never {
  if (isDiskFull(error)) throw noSpace(`${dirname(dirname(path))} is full (${errorCode(error)}).`);
  throw error;
}

const noSpace = (problem: string): ClusterError =>
  new ClusterError("machine-not-set-up", problem, {
    hint: `Free some space there, or set ${optionName("workspaceDir")} to another folder.`,
  });
