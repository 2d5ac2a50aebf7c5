import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { ClusterError, type ErrorId } from "../../errors.ts";
import { megabytesText } from "../../system/amounts.ts";
import { type WebFailure, resumeDownload } from "../../system/files/download.ts";
import { acquireProcessLock } from "../../system/processes/process-identity.ts";
import type { Step, Work } from "../../system/runtime.ts";

export interface CachedDownload {
  /** Such as "image", for people. */
  readonly what: string;
  readonly url: string;
  /** The URL as people and logs may see it. */
  readonly shown: string;
  /** Where the file will be. Its part, and the lock, are beside it. */
  readonly path: string;
  readonly mostBytes: number;
  /** The error of a download that fails, and what to do about it. */
  readonly failure: { readonly id: ErrorId; readonly hint: string };
  /** Whether an earlier download is there, and is still what it was. */
  readonly isThere: () => Promise<boolean>;
  /** Throws if the file at this path isn't the expected one, or the signal is aborted. */
  readonly assertSum: (path: string) => Promise<void>;
}

const stallLimitMs = 60_000;

/**
 * Downloads a file unless it is there, or waits for another process that downloads it. The part is
 * kept until the next attempt if the download is interrupted. Calls `onStored` once a new file is
 * at its path.
 */
export async function downloadToCache(
  { clock, progress, signal }: Work,
  download: CachedDownload,
  step: Step,
  onStored: () => Promise<void> = async () => {},
): Promise<void> {
  const { what, path, isThere, assertSum } = download;
  const onWait = (advice: string): void =>
    progress.note(`Waiting for another process that downloads the same ${what}.${advice}`);
  await using _ = await acquireProcessLock(`${path}.lock`, { clock, onWait }, signal);
  if (await isThere()) return;
  const draft = `${path}.part`;
  await resumeDownload(
    {
      ...download,
      path: draft,
      hasChecksum: true,
      clock,
      stallLimitMs,
      space: {
        folder: dirname(path),
        hint: "Free some space, or set XDG_CACHE_HOME to another folder.",
      },
      onProgress: (received, total) => step.update(megabytesText(received, total)),
      failed: (failure) => downloadFailed(download, failure),
    },
    signal,
  );
  step.update("verifying its checksum");
  try {
    await assertSum(draft);
  } catch (error) {
    // Resuming this download wouldn't help.
    if (!signal.aborted) await rm(draft, { force: true });
    throw error;
  }
  await flush(draft);
  await rename(draft, path);
  await onStored();
}

/** After a power cut, the file's name must not lead to less. */
async function flush(path: string): Promise<void> {
  await using file = await open(path, "r+");
  await file.sync();
}

function downloadFailed(
  { shown, failure }: CachedDownload,
  { cause, reason, transient = false }: WebFailure,
): ClusterError {
  const hint =
    cause === "size"
      ? "Check the URL, or download the file yourself and pass its path. What was received is deleted."
      : failure.hint;
  return new ClusterError(failure.id, `Cannot download ${shown}: ${reason}`, {
    hint,
    transient,
    facts: { url: shown },
  });
}
