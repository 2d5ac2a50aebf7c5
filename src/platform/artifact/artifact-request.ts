import { ClusterError, messageOf } from "../../errors.ts";
import { RefusedRedirect, requestFile } from "../../system/files/request-file.ts";
import type { ArtifactLocation } from "./artifact-location.ts";
import { answerFailure, artifactUnreachable, requestFailure } from "./artifact-failure.ts";

export type WebLocation = Extract<ArtifactLocation, { readonly kind: "url" }>;

/**
 * Requests an artifact and resolves with the answer (200, 206 or 416), its body unread. The user part goes only to the artifact's own origin. Fails as
 * `artifact-unreachable`, also for a redirect from https to http, because the artifact runs as root.
 */
export async function requestArtifact(
  location: WebLocation,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  try {
    return await accepted(await requestFile(location.url, headers, signal), location);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ClusterError) throw error;
    throw error instanceof RefusedRedirect
      ? artifactUnreachable(location.shown, messageOf(error), { hint: redirectHint })
      : requestFailure(location.shown, error);
  }
}

const acceptedStatuses: ReadonlySet<number> = new Set([200, 206, 416]);
const redirectHint = "Pass the URL that serves the file itself, or download the file and pass its path.";

async function accepted(response: Response, location: WebLocation): Promise<Response> {
  if (acceptedStatuses.has(response.status)) return response;
  await response.body?.cancel();
  throw answerFailure(location.shown, response.status);
}
