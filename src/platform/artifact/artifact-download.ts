import { join } from "node:path";
import { ClusterError } from "../../errors.ts";
import { sha256OfFile } from "../../system/files/file-hash.ts";
import { temporaryFolder } from "../../system/files/temporary-folder.ts";
import { parseHead } from "./artifact-head.ts";
import type { ArtifactLocation } from "./artifact-location.ts";
import { readFileStart } from "./artifact-start.ts";
import type { TransferRequest } from "./artifact-transfer.ts";
import { transferArtifact } from "./artifact-transfer.ts";

/** An artifact as a file on this machine. Disposing of it removes a downloaded file, but never the user's own. */
export interface LocalArtifact extends AsyncDisposable {
  readonly path: string;
  readonly sizeBytes: number;
}

export interface DownloadRequest extends TransferRequest {
  /** An existing folder. The download creates its own folder in it and removes that folder on disposal or failure. */
  readonly workspaceFolder: string;
  /** Hexadecimal, as `sha256sum` prints it; undefined: not checked. */
  readonly sha256: string | undefined;
}

/**
 * Downloads the artifact to this machine; a local file stays where it is. Fails as `artifact-unreachable`, `artifact-invalid` (not a script, or a
 * wrong checksum) or `machine-not-set-up` (no disk space).
 */
export async function downloadArtifact(
  location: ArtifactLocation,
  request: DownloadRequest,
  signal: AbortSignal,
): Promise<LocalArtifact> {
  if (location.kind === "file")
    return checked({ path: location.path, [Symbol.asyncDispose]: async () => {} }, location, request, signal);
  const folder = await temporaryFolder(request.workspaceFolder);
  try {
    const path = join(folder.path, "artifact.sh");
    await transferArtifact(location, path, request, signal);
    return await checked(
      { path, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() },
      location,
      request,
      signal,
    );
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    throw error;
  }
}

async function checked(
  file: Omit<LocalArtifact, "sizeBytes">,
  { shown }: ArtifactLocation,
  { sha256 }: DownloadRequest,
  signal: AbortSignal,
): Promise<LocalArtifact> {
  const start = await readFileStart(file.path);
  parseHead(start, shown);
  if (sha256 !== undefined) await assertSum({ path: file.path, shown }, sha256, signal);
  return { ...file, sizeBytes: start.sizeBytes };
}

/** Fails as `artifact-invalid` if the file's SHA-256 sum differs from this one, which is hexadecimal. */
export async function assertSum(
  { path, shown }: { readonly path: string; readonly shown: string },
  sha256: string,
  signal: AbortSignal,
): Promise<void> {
  const expected = sha256.toLowerCase();
  const actual = await sha256OfFile(path, signal);
  if (actual === expected) return;
  throw new ClusterError(
    "artifact-invalid",
    `The artifact ${shown} has the SHA-256 checksum ${actual}, not ${expected}.`,
    {
      hint: "Check `artifactSha256`, and whether ARTIFACT_URL is the intended release.",
      facts: { artifact: shown, expectedSha256: expected, actualSha256: actual },
    },
  );
}
