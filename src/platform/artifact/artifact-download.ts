import { dirname, join } from "node:path";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { type FileFacts, sha256OfListed } from "../../system/files/listed-file.ts";
import { isDiskFull } from "../../system/files/private-file.ts";
import { ownedFolder } from "../../system/files/owned-folder.ts";
import {
  type DiskSpace,
  type Download,
  diskFull,
  resumeDownload,
} from "../../system/files/download.ts";
import { mostBytes } from "../../system/network.ts";
import { writeArtifact } from "../folder/pack.ts";
import { parseHead, readFileStart } from "./artifact-head.ts";
import { type ArtifactLocation, webArtifact } from "./artifact-request.ts";

/**
 * An artifact as a file on this machine. Disposing of it removes a downloaded or packed file, but
 * never the user's own.
 */
export interface LocalArtifact extends AsyncDisposable {
  readonly file: FileFacts;
}

export interface DownloadRequest extends Pick<
  Download,
  "clock" | "deadlineMs" | "stallLimitMs" | "onProgress"
> {
  /** An existing folder. The download creates its own folder in it and removes that folder on disposal or failure. */
  readonly workspaceFolder: string;
  /** Hexadecimal, as `sha256sum` prints it; undefined: not checked. */
  readonly sha256: string | undefined;
}

/**
 * Downloads the artifact to this machine, or packs it; a local file stays where it is. Throws
 * `artifact-unreachable`, `artifact-invalid` (not a script, or a wrong checksum) or
 * `machine-not-set-up` (no disk space).
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
    const space = workspace(path);
    await (location.kind === "folder"
      ? writeArtifact(location.platform, path, signal).catch((error: unknown) => {
          throw isDiskFull(error) ? diskFull(space) : error;
        })
      : resumeDownload(
          {
            ...request,
            ...webArtifact(location),
            path,
            space,
            hasChecksum: false,
            mostBytes: mostBytes.artifact,
          },
          signal,
        ));
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
      hint: `Check ${optionName("artifactSha256")}, and whether this is the intended release.`,
      facts: { artifact: shown, expectedSha256: expected, actualSha256: actual },
    },
  );
}

/** The workspace, in which the download's own folder is. */
const workspace = (path: string): DiskSpace => ({
  folder: dirname(dirname(path)),
  hint: `Free some space there, or set ${optionName("workspaceDir")} to another folder.`,
});
