import { ClusterError, messageOf } from "../../errors.ts";
import type { Progress } from "../../system/runtime.ts";
import { fetchFile, type FetchSource } from "./fetch-file.ts";
import type { FetchRequest } from "./fetch-request.ts";

interface Fetching {
  /** Opens the source; called only if there is something to fetch. */
  readonly open: (signal: AbortSignal) => Promise<FetchSource>;
  readonly progress: Progress;
}

/**
 * Fetches everything after a command that ended with `status`, and returns that status. If something can't be fetched, the rest is fetched even so. A
 * failure then becomes a warning if the command failed as well, because its own status tells more; otherwise the first failure is thrown.
 */
export async function fetchFiles(
  status: number,
  requests: readonly FetchRequest[],
  { open, progress }: Fetching,
  signal: AbortSignal,
): Promise<number> {
  const failures: ClusterError[] = [];
  for (const request of requests) {
    using step = progress.start("Fetch", request.remote);
    try {
      const { files, bytes } = await fetchFile(request, await open(signal), signal);
      step.done(`${files} ${files === 1 ? "file" : "files"}, ${bytes} bytes`);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ClusterError)) throw error;
      failures.push(error);
    }
  }
  const [first, ...others] = failures;
  for (const error of status === 0 ? others : failures) progress.warn(messageOf(error));
  if (status === 0 && first !== undefined) throw first;
  return status;
}
