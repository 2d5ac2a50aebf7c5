import { numbered } from "../system/amounts.ts";
import { constants, lstat, mkdir, rename, rmdir, stat } from "node:fs/promises";
import { basename, dirname, posix, resolve } from "node:path";
import { ClusterError, messageOf, quoted, assertExpected, systemReason } from "../errors.ts";
import type { Connection } from "../ssh/connection/connection.ts";
import { type SessionSettings, renderSessionScript } from "../ssh/session/session-line.ts";
import { outside } from "../outside-text.ts";
import { shellText } from "../ssh/shell-text.ts";
import { type Checked, problem } from "../model/checked.ts";
import { draftBeside } from "../system/files/draft.ts";
import { errorCode, isAccessible } from "../system/files/private-file.ts";
import { type Unpacked, unpackTar } from "../system/files/read-tar.ts";
import { type ArchiveLimits, ArchiveProblem, IncompleteArchive } from "../system/files/tar.ts";
import { outsideReason, plainLines } from "../system/printable.ts";
import type { Progress } from "../system/runtime.ts";
import { watchdog } from "../system/time-limit.ts";
import { isWanted } from "./run/run-until.ts";
import sendFile from "./send-file.sh" with { type: "text" };

export interface FetchSource {
  readonly connection: Connection;
  readonly node: string;
  /** The settings of the command's session; only their working directories are used. */
  readonly settings: readonly SessionSettings[];
}

export interface Fetched extends Unpacked {
  /** Files that became shorter while they were read: zeros are in the place of what is missing. At most ten. */
  readonly shrunk: readonly string[];
}

/** The limits for one file or folder. A node that sends more is broken or hostile. */
const limits: ArchiveLimits = { entries: 100_000, totalBytes: 16 * 1024 ** 3 };
const stallLimitMs = 60_000;

/**
 * Brings a file or folder from a node, all or nothing: it is written beside its target and then
 * renamed. A file replaces an existing file. Writes nothing else, whatever the node sends. Throws
 * `transfer-failed` or `connection-failed`.
 */
export async function fetchFile(
  request: FetchRequest,
  source: FetchSource,
  signal: AbortSignal,
): Promise<Fetched> {
  const folder = dirname(request.local);
  const made: { first?: string | undefined } = {};
  try {
    made.first = await mkdir(folder, { recursive: true });
    await using draft = await draftBeside(request.local);
    const unpacked = await receive(request, { ...source, draft: draft.path }, signal);
    await rename(draft.path, request.local);
    return unpacked;
  } catch (error) {
    await removeEmptyFolders(folder, made.first);
    throw explained(error, request, source);
  }
}

/** Removes this folder and those above it up to `first`, as long as they are empty. */
async function removeEmptyFolders(folder: string, first: string | undefined): Promise<void> {
  if (first === undefined || folder.length < first.length) return;
  const isRemoved = await rmdir(folder).then(
    () => true,
    () => false,
  );
  if (isRemoved) await removeEmptyFolders(dirname(folder), first);
}

async function receive(
  { remote }: FetchRequest,
  { connection, settings, draft }: FetchSource & { readonly draft: string },
  signal: AbortSignal,
): Promise<Fetched> {
  using limit = watchdog(stallLimitMs, signal);
  const outcome: { unpacked?: Unpacked; cutOff?: IncompleteArchive } = {};
  const command = {
    argv: ["sh", "-c", sendScript(remote, settings)],
    sudo: true,
    receive: async (stdout: AsyncIterable<Uint8Array>) => {
      try {
        outcome.unpacked = await unpackTar(fed(stdout, limit.feed), draft, limits, limit.signal);
      } catch (error) {
        // The command's stderr may explain why it has sent no more.
        if (!(error instanceof IncompleteArchive)) throw error;
        outcome.cutOff = error;
      }
    },
  };
  const { status, stderr } = await run(connection, command, { limit, signal });
  // GNU tar exits with 1 if a file changed while it was read, such as a log. The archive is complete all the same.
  if (status > 1 || outcome.unpacked === undefined) {
    // The session's script ends its messages with a period, like the error that quotes them.
    const reason = outsideReason(stderr);
    throw new ArchiveProblem(reason || (outcome.cutOff?.message ?? `tar exited with ${status}`));
  }
  return { ...outcome.unpacked, shrunk: shrunkFiles(stderr) };
}

const mostShrunk = 10;

/** The names of which GNU tar says `tar: ./NAME: File shrank by 1234 bytes; padding with zeros`. */
const shrunkFiles = (said: string): readonly string[] =>
  plainLines(said, mostShrunk).flatMap(
    (line) => /^tar: (?:\.\/)?(.+): File shrank by \d+ bytes?;/.exec(line)?.[1] ?? [],
  );

async function run(
  connection: Connection,
  command: Parameters<Connection["run"]>[0],
  { limit, signal }: { readonly limit: ReturnType<typeof watchdog>; readonly signal: AbortSignal },
): ReturnType<Connection["run"]> {
  try {
    return await connection.run(command, limit.signal);
  } catch (error) {
    signal.throwIfAborted();
    if (limit.hasExpired())
      throw new ArchiveProblem(`no data arrived for ${stallLimitMs / 1000} s`);
    throw error;
  }
}

async function* fed(
  chunks: AsyncIterable<Uint8Array>,
  feed: () => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of chunks) {
    feed();
    yield chunk;
  }
}

/**
 * A relative path starts at the command's working directory. The session's variables, which may be
 * secrets, are left out.
 */
function sendScript(remote: string, settings: readonly SessionSettings[]): string {
  const folders = remote.startsWith("/")
    ? []
    : settings.map(({ whenExists, workingDirectory }) => ({
        whenExists,
        workingDirectory,
        environmentFile: undefined,
        variables: {},
      }));
  return renderSessionScript({
    settings: folders,
    words: ["sh", "-c", shellText(sendFile), "e2e-send-file", remote],
    missingFolderHint: "",
  });
}

function explained(
  error: unknown,
  { remote, local }: FetchRequest,
  { node }: FetchSource,
): unknown {
  const fail = (reason: string, hint: string): ClusterError =>
    new ClusterError("transfer-failed", `Cannot fetch ${remote} from ${node}: ${reason}.`, {
      hint,
      facts: { node, remote, local },
      cause: error,
    });
  if (error instanceof ArchiveProblem) {
    return fail(
      messageOf(error),
      "Nothing was written. Check the path, and fetch only regular files and folders.",
    );
  }
  if (error instanceof ClusterError || errorCode(error) === undefined) return error;
  return fail(
    `cannot write ${local}: ${systemReason(error)}`,
    "Check that disk's free space and permissions, or fetch to another path.",
  );
}

interface Fetching {
  /** Opens the source; called only if there is something to fetch. */
  readonly open: (signal: AbortSignal) => Promise<FetchSource>;
  readonly progress: Progress;
  /** Whether the command was expected to fail; default: no. */
  readonly fails?: boolean | undefined;
}

/**
 * Fetches files after a command that ended with `status`, and returns that status. A file that
 * can't be fetched doesn't stop the others. If the command did not end as expected, such failures
 * are only warnings, because its status matters more; otherwise the first one is thrown.
 */
export async function fetchFiles(
  status: number,
  requests: readonly FetchRequest[],
  { open, progress, fails = false }: Fetching,
  signal: AbortSignal,
): Promise<number> {
  const failures: ClusterError[] = [];
  for (const request of requests) {
    using step = progress.start("Fetch", request.remote);
    try {
      const fetched = await fetchFile(request, await open(signal), signal);
      warnOfShrunk(fetched, request, progress);
      const { files, bytes } = fetched;
      step.done(`${numbered(files, "file")}, ${numbered(bytes, "byte")}`);
    } catch (error) {
      assertExpected(error, signal);
      failures.push(error);
    }
  }
  const [first, ...others] = failures;
  const isGood = isWanted(status, { fails, isRemote: true });
  for (const error of isGood ? others : failures) progress.warn(messageOf(error));
  if (isGood && first !== undefined) throw first;
  return status;
}

export function warnOfShrunk(
  { shrunk }: Fetched,
  { remote }: FetchRequest,
  progress: Progress,
): void {
  if (shrunk.length === 0) return;
  progress.warn(
    `${outside(shrunk.join(", "))}: became shorter while it was fetched from ${remote}, so its end is zeros`,
  );
}

export interface FetchRequest {
  /** Absolute, or relative to the command's working directory. */
  readonly remote: string;
  /** The absolute path of the new file or folder. No folder has this path. */
  readonly local: string;
}

/**
 * Parses `remote:local`, which is split at the last colon. A local path that ends with `/` means "into this folder,
 * under the same name". Finds out now what would prevent the file from being written after the command, which may take
 * hours.
 */
export async function parseFetchRequest(text: string, cwd: string): Promise<Checked<FetchRequest>> {
  const colon = text.lastIndexOf(":");
  const [remote, given] = [text.slice(0, Math.max(colon, 0)), text.slice(colon + 1)];
  if (remote === "" || given === "")
    return problem(`${quoted(text)}: use the form /remote/path:/local/path`);
  if (/\p{Cc}/u.test(text))
    return problem(`${quoted(text)}: a path cannot contain control characters`);
  const name = posix.basename(remote);
  if (given.endsWith("/") && ["", ".", ".."].includes(name)) {
    return problem(
      `${quoted(text)}: the remote path names no file; write a local path without / at the end`,
    );
  }
  return checkTarget({ remote, local: resolve(cwd, given, given.endsWith("/") ? name : "") });
}

/** Finds out what would prevent the local file or folder, an absolute path, from being written. */
export async function checkTarget(request: FetchRequest): Promise<Checked<FetchRequest>> {
  const { local } = request;
  const target = await stat(local).catch(() => undefined);
  if (target?.isDirectory() === true)
    return problem(
      `the folder ${local} already exists; remove it, or end the local path with / to fetch into it`,
    );
  // Renaming would replace a device such as /dev/null, or a link such as /dev/stdout.
  if ((await lstat(local).catch(() => undefined))?.isFile() === false)
    return problem(`${local} is not a regular file, so it cannot be replaced`);
  const found = await parentProblem(dirname(local));
  return found === undefined ? { value: request } : problem(found);
}

/** Missing folders will be created, so the nearest existing one counts. */
async function parentProblem(folder: string): Promise<string | undefined> {
  try {
    if (!(await stat(folder)).isDirectory()) return `${folder} is not a folder`;
  } catch (error) {
    if (errorCode(error) === "ENOENT" && basename(folder) !== "")
      return parentProblem(dirname(folder));
    return `cannot read the folder ${folder}: ${systemReason(error)}`;
  }
  const isWritable = await isAccessible(folder, constants.W_OK | constants.X_OK);
  return isWritable ? undefined : `cannot write to the folder ${folder}`;
}
