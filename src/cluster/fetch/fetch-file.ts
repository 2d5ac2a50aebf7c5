import { mkdir, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ClusterError, messageOf } from "../../errors.ts";
import type { Connection } from "../../ssh/connection/connection.ts";
import { shellText } from "../../ssh/shell-text.ts";
import sendFile from "./send-file.sh" with { type: "text" };
import { renderSessionScript, type SessionSettings } from "../../ssh/session/session-script.ts";
import { errorCode } from "../../system/error-code.ts";
import { type ArchiveLimits, ArchiveProblem, IncompleteArchive } from "../../system/files/archive-problem.ts";
import { temporaryFolder } from "../../system/files/temporary-folder.ts";
import { type Unpacked, unpackTar } from "../../system/files/unpack-tar.ts";
import { watchdog } from "../../system/time-limit.ts";
import type { FetchRequest } from "./fetch-request.ts";
import { outsideReason } from "../../system/printable.ts";

export interface FetchSource {
  readonly connection: Connection;
  /** The node's reference. */
  readonly node: string;
  /** The settings of the command's session; only their working directories are used. */
  readonly settings: readonly SessionSettings[];
}

/** Per file or folder. A node that sends more is broken or hostile. */
const limits: ArchiveLimits = { entries: 100_000, totalBytes: 16 * 1024 ** 3 };
const stallLimitMs = 60_000;

/**
 * Brings a file or folder from a node, all or nothing: it is written beside its target and then renamed. A file replaces an existing file. Writes
 * nothing else, whatever the node sends. Throws `transfer-failed` or `connection-failed`.
 */
export async function fetchFile(request: FetchRequest, source: FetchSource, signal: AbortSignal): Promise<Unpacked> {
  const parent = dirname(request.local);
  try {
    await mkdir(parent, { recursive: true });
    await using staging = await temporaryFolder(parent);
    const draft = join(staging.path, "fetched");
    const unpacked = await receive(request, { ...source, draft }, signal);
    await rename(draft, request.local);
    return unpacked;
  } catch (error) {
    throw explained(error, request, source);
  }
}

async function receive(
  { remote }: FetchRequest,
  { connection, settings, draft }: FetchSource & { readonly draft: string },
  signal: AbortSignal,
): Promise<Unpacked> {
  using limit = watchdog(stallLimitMs, signal);
  const outcome: { unpacked?: Unpacked; cutOff?: IncompleteArchive } = {};
  const command = {
    argv: ["sh", "-c", sendScript(remote, settings)],
    sudo: true,
    receive: async (stdout: AsyncIterable<Uint8Array>) => {
      try {
        outcome.unpacked = await unpackTar(fed(stdout, limit.feed), draft, limits, limit.signal);
      } catch (error) {
        // The command itself may say why it has sent no more.
        if (!(error instanceof IncompleteArchive)) throw error;
        outcome.cutOff = error;
      }
    },
  };
  const { status, stderr } = await run(connection, command, { limit, signal });
  // GNU tar exits with 1 if a file changed while it was read, such as a log. The archive is complete even so.
  if (status > 1 || outcome.unpacked === undefined) {
    // The session's script ends its messages with a period, like the error that quotes them.
    const reason = outsideReason(stderr);
    throw new ArchiveProblem(reason || (outcome.cutOff?.message ?? `tar exited with ${status}`));
  }
  return outcome.unpacked;
}

async function run(
  connection: Connection,
  command: Parameters<Connection["run"]>[0],
  { limit, signal }: { readonly limit: ReturnType<typeof watchdog>; readonly signal: AbortSignal },
): ReturnType<Connection["run"]> {
  try {
    return await connection.run(command, limit.signal);
  } catch (error) {
    signal.throwIfAborted();
    if (limit.hasExpired()) throw new ArchiveProblem(`no data arrived for ${stallLimitMs / 1000} s`);
    throw error;
  }
}

async function* fed(chunks: AsyncIterable<Uint8Array>, feed: () => void): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of chunks) {
    feed();
    yield chunk;
  }
}

/** A relative path starts at the command's working directory. The session's variables, which may be secrets, are left out. */
function sendScript(remote: string, settings: readonly SessionSettings[]): string {
  const places = remote.startsWith("/")
    ? []
    : settings.map(({ whenExists, workingDirectory }) => ({
        whenExists,
        workingDirectory,
        environmentFile: undefined,
        variables: {},
      }));
  return renderSessionScript({
    settings: places,
    words: ["sh", "-c", shellText(sendFile), "e2e-send-file", remote],
    missingFolderHint: "",
  });
}

function explained(error: unknown, { remote, local }: FetchRequest, { node }: FetchSource): unknown {
  const fail = (reason: string, hint: string): ClusterError =>
    new ClusterError("transfer-failed", `Cannot fetch ${remote} from ${node}: ${reason}.`, {
      hint,
      facts: { node, remote, local },
      cause: error,
    });
  if (error instanceof ArchiveProblem) {
    return fail(messageOf(error), "Nothing was written. Check the path, and fetch only regular files and folders.");
  }
  const code = errorCode(error);
  if (error instanceof ClusterError || code === undefined) return error;
  return fail(
    `cannot write ${local} (${code})`,
    "Check that disk's free space and permissions, or fetch to another path.",
  );
}
