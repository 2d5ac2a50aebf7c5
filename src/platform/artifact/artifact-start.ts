import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { ClusterError } from "../../errors.ts";
import { errorCode } from "../../system/error-code.ts";
import { watchdog } from "../../system/time-limit.ts";
import { answerBody, answerExtent } from "./artifact-answer.ts";
import { artifactUnreachable } from "./artifact-failure.ts";
import type { WebLocation } from "./artifact-request.ts";
import { requestArtifact } from "./artifact-request.ts";

/** The first bytes of an artifact: 4 KiB, or fewer if it is smaller. */
export interface ArtifactStart {
  readonly bytes: Uint8Array;
  /** Size of the whole artifact, if known. */
  readonly sizeBytes: number | undefined;
}

const startBytes = 4096;

/** Requests only the first bytes; if the server sends everything, the rest is not read. Tries once, and gives up after `limitMs`. */
export async function readWebStart(
  location: WebLocation,
  limitMs: number,
  signal: AbortSignal,
): Promise<ArtifactStart> {
  using limit = watchdog(limitMs, signal);
  try {
    const response = await requestArtifact(location, { range: `bytes=0-${startBytes - 1}` }, limit.signal);
    // There is no first byte, so the file is empty.
    if (response.status === 416) return { bytes: new Uint8Array(), sizeBytes: 0 };
    const { totalBytes } = answerExtent(response, location.shown);
    return { bytes: await takeStart(answerBody(response, location.shown, limit.signal)), sizeBytes: totalBytes };
  } catch (error) {
    if (!limit.hasExpired()) throw error;
    throw artifactUnreachable(location.shown, `no answer within ${limitMs / 1000} s.`, { transient: true });
  }
}

/** Reads the first bytes of a file on this machine. Fails as `artifact-unreachable`, or as `artifact-invalid` if it isn't a file. */
export async function readFileStart(path: string): Promise<ArtifactStart & { readonly sizeBytes: number }> {
  try {
    // Or opening a pipe would wait until somebody writes to it.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const information = await file.stat();
    if (!information.isFile()) {
      const what = information.isDirectory() ? "it is a folder" : "it is not a file";
      throw new ClusterError("artifact-invalid", `${path} is not a release artifact: ${what}.`, {
        hint: pathHint,
        facts: { artifact: path },
      });
    }
    const { bytesRead, buffer } = await file.read(Buffer.alloc(startBytes), 0, startBytes, 0);
    return { bytes: buffer.subarray(0, bytesRead), sizeBytes: information.size };
  } catch (error) {
    if (error instanceof ClusterError) throw error;
    throw artifactUnreachable(path, fileReason(errorCode(error)), {
      hint: pathHint,
      facts: { code: errorCode(error) },
    });
  }
}

const pathHint = "ARTIFACT_URL must be the path, or the URL, of the installer generator script.";

async function takeStart(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= startBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, startBytes);
}

function fileReason(code: string | undefined): string {
  if (code === "ENOENT" || code === "ENOTDIR") return "the file does not exist.";
  return code === "EACCES" ? "this user may not read it." : `it cannot be opened (${code ?? "no code"}).`;
}
