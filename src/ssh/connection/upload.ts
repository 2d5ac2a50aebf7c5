import { randomBytes } from "node:crypto";
import { type FileHandle, open, stat } from "node:fs/promises";
import { ClusterError } from "../../errors.ts";
import { outsideReason } from "../../system/printable.ts";
import { shellText } from "../shell-text.ts";
import type { UploadSource, UploadTarget } from "./connection.ts";
import type { Link } from "./exec-channel.ts";
import receive from "./receive.sh" with { type: "text" };
import { runOverLink } from "./run-over-link.ts";

const chunkBytes = 256 * 1024;

/**
 * `Connection.upload` over an open link. The bytes go through the stdin of a single command, which needs no sftp and can run as root: it writes
 * beside the target, checks the size, and then renames. It creates missing folders (0755). A failure on either side leaves no part of the file
 * behind.
 */
export async function uploadOver(
  link: Link,
  source: UploadSource,
  target: UploadTarget,
  signal: AbortSignal,
): Promise<void> {
  await using content = await openContent(link, source, target);
  const result = await runOverLink(
    link,
    {
      argv: [
        "sh",
        "-c",
        shellText(receive),
        "e2e-receive",
        target.path,
        target.mode.toString(8).padStart(4, "0"),
        String(content.size),
        randomBytes(8).toString("hex"),
      ],
      sudo: target.sudo ?? false,
      stdin: counted(content, target),
    },
    signal,
  );
  if (result.status === 0) return;
  const reason = outsideReason(result.stderr) || `status ${result.status}`;
  throw transferFailed(link, target, reason);
}

interface Content extends AsyncDisposable {
  readonly size: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

async function openContent(link: Link, source: UploadSource, target: UploadTarget): Promise<Content> {
  if ("text" in source) {
    const bytes = Buffer.from(source.text);
    return { size: bytes.length, chunks: slices(bytes), [Symbol.asyncDispose]: async () => {} };
  }
  const fail: Fail = (reason, cause) => transferFailed(link, target, `${source.file} ${reason}`, cause);
  const { file, size } = await openFile(source.file, fail);
  return { size, chunks: fileChunks(file, size, fail), [Symbol.asyncDispose]: () => file.close() };
}

type Fail = (reason: string, cause?: unknown) => ClusterError;

async function openFile(path: string, fail: Fail): Promise<{ readonly file: FileHandle; readonly size: number }> {
  try {
    const { size } = await stat(path);
    return { file: await open(path, "r"), size };
  } catch (error) {
    throw fail("it cannot be read", error);
  }
}

/** The node knows the size in advance, so a file that changes meanwhile fails on both sides. */
async function* fileChunks(file: FileHandle, size: number, fail: Fail): AsyncGenerator<Uint8Array, void, void> {
  const sent = { bytes: 0 };
  for (;;) {
    const chunk = await readChunk(file, fail);
    sent.bytes += chunk.length;
    if (sent.bytes > size || (chunk.length === 0 && sent.bytes < size))
      throw fail("it changed while it was being sent");
    if (chunk.length === 0) return;
    yield chunk;
  }
}

async function readChunk(file: FileHandle, fail: Fail): Promise<Uint8Array> {
  try {
    const buffer = Buffer.allocUnsafeSlow(chunkBytes);
    const { bytesRead } = await file.read(buffer, 0, chunkBytes, null);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw fail("it cannot be read to the end", error);
  }
}

async function* slices(bytes: Buffer): AsyncGenerator<Uint8Array, void, void> {
  for (let start = 0; start < bytes.length; start += chunkBytes) yield bytes.subarray(start, start + chunkBytes);
}

async function* counted({ size, chunks }: Content, target: UploadTarget): AsyncGenerator<Uint8Array, void, void> {
  const sent = { bytes: 0 };
  for await (const chunk of chunks) {
    yield chunk;
    sent.bytes += chunk.length;
    target.onProgress?.(sent.bytes, size);
  }
}

function transferFailed(link: Link, target: UploadTarget, reason: string, cause?: unknown): ClusterError {
  return new ClusterError("transfer-failed", `Cannot send ${target.path} to ${link.target.name}: ${reason}.`, {
    hint: "Try again. If this happens again, check the free space on that node's disk.",
    facts: { node: link.target.name, path: target.path },
    cause,
  });
}
