import type { Stats } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { basename, join, posix, resolve } from "node:path";
import { Readable } from "node:stream";
import { ClusterError, quoted, systemReason } from "../../errors.ts";
import { type Checked, problem } from "../../model/checked.ts";
import type { Connection } from "../../ssh/connection/connection.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import { type ListedFile, listFiles } from "../../system/files/list-files.ts";
import { factsOf, readListed } from "../../system/files/listed-file.ts";
import { errorCode } from "../../system/files/private-file.ts";
import { type TarFile, tarStream } from "../../system/files/tar.ts";
import { outsideReason } from "../../system/printable.ts";
import receiveFiles from "./receive-files.sh" with { type: "text" };

/** Files of this computer, and where they go on a node. */
interface SendRequest {
  /** The path as it was given. */
  readonly target: string;
  /** Absolute path of the folder on the node. */
  readonly folder: string;
  /** Paths are relative to that folder. */
  readonly files: readonly ListedFile[];
  /** The folders of these files, each behind those above it; not those that are only in `folder`. */
  readonly folders: readonly TarFile[];
}

type SentFiles = Pick<SendRequest, "files" | "folders">;

const atOnce = 16;

/**
 * Lists the files to send. A target that ends with `/` is the folder for all sources, which keep their names; otherwise
 * it is the new path of the only source. Links are followed; those inside a folder must not lead out of it.
 */
export async function parseSendRequest(
  sources: readonly string[],
  target: string,
  { cwd, signal }: { readonly cwd: string; readonly signal: AbortSignal },
): Promise<Checked<SendRequest>> {
  const isFolder = target.endsWith("/");
  if (!target.startsWith("/") || /\p{Cc}/u.test(target))
    return problem(relativePathProblem(target));
  if (sources.length > 1 && !isFolder)
    return problem(`${quoted(target)}: for several sources, end it with /`);
  const name = posix.basename(target);
  if (!isFolder && [".", ".."].includes(name)) return problem(`${quoted(target)} names no file`);
  const names = new Map<string, string>();
  for (const source of sources) {
    const own = isFolder ? basename(resolve(cwd, source)) : name;
    const other = names.get(own);
    if (own === "" || other !== undefined)
      return problem(
        `${quoted(source)}: ${own === "" ? "it has no name" : `${quoted(other ?? "")} has the same name`}`,
      );
    names.set(own, source);
  }
  const list = async ([own, source]: readonly [string, string]) =>
    listSource(resolve(cwd, source), own, signal);
  const lists = await mapConcurrently([...names], atOnce, list, signal);
  const problems = lists.flatMap((each) => each.problems ?? []);
  if (problems.length > 0) return { problems };
  const folder = isFolder ? posix.join(target, ".") : posix.dirname(target);
  const found = lists.flatMap((each) => each.value ?? []);
  const files = found.flatMap((each) => each.files);
  return { value: { target, folder, files, folders: found.flatMap((each) => each.folders) } };
}

/** The problem with a path on nodes that doesn't begin with `/`, or has control characters. */
export const relativePathProblem = (path: string): string =>
  `${quoted(path)} is not an absolute path; begin it with /, as in NODE:/tmp/`;

async function listSource(
  path: string,
  name: string,
  signal: AbortSignal,
): Promise<Checked<SentFiles>> {
  try {
    const source = await realpath(path);
    const information = await stat(source);
    if (information.isFile()) {
      const file = { ...factsOf(source, information), path: name, mode: information.mode & 0o777 };
      return { value: { files: [file], folders: [] } };
    }
    if (!information.isDirectory()) return problem(`${path} is neither a file nor a folder`);
    const { value, problems } = await listFiles(source, {}, signal);
    if (problems !== undefined) return { problems };
    if (value.length === 0) return problem(`${path} has no files`);
    const files = value.map((file) => ({ ...file, path: `${name}/${file.path}` }));
    const toFolder = async (inner: string) =>
      tarFolder(posix.join(name, inner), await stat(join(source, inner)));
    const folders = await mapConcurrently([...foldersOf(value)], atOnce, toFolder, signal);
    return { value: { files, folders } };
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined) throw error;
    return problem(
      code === "ENOENT" ? `${path} does not exist` : `cannot read ${path}: ${systemReason(error)}`,
    );
  }
}

/** The paths of the folders of files, `.` first, each behind those above it. */
function foldersOf(files: readonly ListedFile[]): ReadonlySet<string> {
  const folders = new Set(["."]);
  for (const { path } of files) {
    for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1))
      folders.add(path.slice(0, end));
  }
  return folders;
}

const tarFolder = (path: string, { mode, mtimeMs }: Stats): TarFile => ({
  name: `${path}/`,
  mode: mode & 0o777,
  modifiedMs: mtimeMs,
  sizeBytes: 0,
  contents: () => Readable.from([]),
});

/** Sends files to a node, as root, all or nothing. Throws `transfer-failed` or `connection-failed`. */
export async function sendFiles(
  { target, folder, files, folders }: SendRequest,
  { connection, node }: { readonly connection: Connection; readonly node: string },
  signal: AbortSignal,
) {
  const argv = ["sh", "-c", shellText(receiveFiles), "e2e-receive-files", folder];
  const stdin = tarStream([...folders, ...files.map(tarFile)]);
  const { status, stderr } = await connection.run({ argv, sudo: true, stdin }, signal);
  if (status !== 0) {
    const reason = outsideReason(stderr) || `status ${status}`;
    throw new ClusterError("transfer-failed", `Cannot copy to ${target} on ${node}: ${reason}.`, {
      hint: "End the path with / to copy into a folder; otherwise check the path and the free space on that node.",
      facts: { node, remote: target },
    });
  }
  return { files: files.length, bytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
}

const tarFile = (file: ListedFile): TarFile => ({
  name: file.path,
  mode: file.mode,
  modifiedMs: file.modifiedMs,
  sizeBytes: file.sizeBytes,
  contents: () => readListed(file),
});
