import { randomBytes } from "node:crypto";
import { ClusterError } from "../../errors.ts";
import { readListed } from "../../system/files/listed-file.ts";
import { outsideReason } from "../../system/printable.ts";
import { shellText } from "../shell-text.ts";
import type { UploadSource, UploadTarget } from "./connection.ts";
import type { Link } from "./exec-channel.ts";
import receive from "./receive.sh" with { type: "text" };
import { shortStdinBytes } from "./root-shell.ts";
import { runOverLink } from "./run-over-link.ts";

const chunkBytes = 256 * 1024;

/**
 * `Connection.upload` over an open link. The bytes go through the stdin of a single command, which
 * needs no sftp and can run as root: it writes beside the target, checks the size, and then
 * renames. It creates missing folders (0755). A failure on either side leaves no part of the file
 * behind.
 */
export async function uploadOver(
  link: Link,
  source: UploadSource,
  target: UploadTarget,
  signal: AbortSignal,
): Promise<void> {
  const content = contentOf(source);
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
      isStdinShort: content.size <= shortStdinBytes,
    },
    signal,
  );
  if (result.status === 0) return;
  const reason = outsideReason(result.stderr) || `status ${result.status}`;
  throw transferFailed(link, target, reason);
}

interface Content {
  readonly size: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

function contentOf(source: UploadSource): Content {
  if ("text" in source) {
    const bytes = Buffer.from(source.text);
    return { size: bytes.length, chunks: slices(bytes) };
  }
  const { file } = source;
  return { size: file.sizeBytes, chunks: readListed(file) };
}

async function* slices(bytes: Buffer): AsyncGenerator<Uint8Array, void, void> {
  for (let start = 0; start < bytes.length; start += chunkBytes)
    yield bytes.subarray(start, start + chunkBytes);
}

async function* counted(
  { size, chunks }: Content,
  target: UploadTarget,
): AsyncGenerator<Uint8Array, void, void> {
  const sent = { bytes: 0 };
  for await (const chunk of chunks) {
    yield chunk;
    sent.bytes += chunk.length;
    target.onProgress?.(sent.bytes, size);
  }
}

function transferFailed(link: Link, target: UploadTarget, reason: string): ClusterError {
  return new ClusterError(
    "transfer-failed",
    `Cannot send ${target.path} to ${link.target.name}: ${reason}.`,
    {
      hint: "Try again. If this happens again, check the free space on that node's disk.",
      facts: { node: link.target.name, path: target.path },
    },
  );
}
