import { rm } from "node:fs/promises";
import { join } from "node:path";
import { sha256OfFile } from "../../system/files/byte-source.ts";
import { isAccessible, isFile, makePrivateFolder } from "../../system/files/private-file.ts";
import { maskUrl } from "../../system/mask-url.ts";
import { mostBytes } from "../../system/network.ts";
import type { Environment, Work } from "../../system/runtime.ts";
import { downloadToCache } from "./cached-download.ts";
import { unusableFile } from "./cluster-file.ts";
import type { FileCopyRequest } from "../contract.ts";
import { cacheFolder } from "../../store/state-folder.ts";

const failure = {
  id: "snapshot-unusable",
  hint: "Check the network and the proxy variables (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), or download the file yourself and pass its path. The part that was received is kept, and the next attempt resumes it.",
} as const;

/**
 * Resolves with the path of the file on this computer. A download is cached by its checksum. Throws
 * `snapshot-unusable` if the file can't be downloaded or has another checksum.
 */
export async function obtainFile(
  work: Work,
  { location, sha256 }: FileCopyRequest["file"],
  folderIn: (environment: Environment) => string,
) {
  const { environment, progress, signal } = work;
  const shown = "url" in location ? maskUrl(location.url) : location.shown;
  const assertSum = async (path: string): Promise<void> => {
    const actual = sha256 === undefined ? undefined : await sha256OfFile(path, signal);
    if (actual === sha256) return;
    throw unusableFile(
      shown,
      `has the SHA-256 checksum ${actual ?? ""}, not ${sha256 ?? ""}`,
      "Check the checksum, or download the file again.",
    );
  };
  if ("path" in location) {
    // Opening anything else fails later, with its own error.
    if (await isFile(location.path)) await assertSum(location.path);
    return { path: location.path, shown };
  }
  // Only this user may write to it, even if the umask or an earlier version allowed more.
  await makePrivateFolder(cacheFolder(environment));
  const folder = folderIn(environment);
  await makePrivateFolder(folder);
  const path = join(folder, `cluster-${sha256 ?? ""}.zst`);
  using step = progress.start("Download the file", shown);
  const isThere = async (): Promise<boolean> => isIntact(path, sha256, signal);
  const { clusterFile } = mostBytes;
  await downloadToCache(
    work,
    {
      what: "file",
      url: location.url,
      shown,
      path,
      mostBytes: clusterFile,
      failure,
      isThere,
      assertSum,
    },
    step,
  );
  step.done();
  return { path, shown };
}

/** Whether an earlier download is here. A damaged one is removed, because every other attempt would find it again. */
async function isIntact(
  path: string,
  sha256: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  if (!(await isAccessible(path))) return false;
  if ((await sha256OfFile(path, signal)) === sha256) return true;
  await rm(path, { force: true });
  return false;
}
