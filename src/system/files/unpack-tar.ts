import { mkdir, open, symlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { quoted } from "../../errors.ts";
import { isPlainLine } from "../printable.ts";
import { type ArchiveLimits, ArchiveProblem } from "./archive-problem.ts";
import { linkThatLeadsOut } from "./leads-out.ts";
import { readTar, type TarEntry } from "./read-tar.ts";

export interface Unpacked {
  readonly files: number;
  readonly bytes: number;
}

/**
 * Unpacks an archive of one file, whatever its name, or of one folder named `.`, as `target`. Nothing may exist there, and nobody else may write to
 * the folder around it. Writes nowhere else, and creates no links that lead out of the folder. The umask applies to all permissions, and this user
 * can read and write everything. Throws `ArchiveProblem` or the signal's reason, and leaves what it has written.
 */
export async function unpackTar(
  archive: AsyncIterable<Uint8Array>,
  target: string,
  limits: ArchiveLimits,
  signal: AbortSignal,
): Promise<Unpacked> {
  const sum = { files: 0, bytes: 0 };
  const tree: Tree = { target, kinds: new Map(), links: new Map() };
  const linkCharacters = { count: 0 };
  for await (const entry of readTar(archive, limits)) {
    signal.throwIfAborted();
    const path = place(tree, entry);
    tree.kinds.set(path, entry.kind);
    if (entry.kind === "file") {
      sum.files += 1;
      sum.bytes += await writeFile(join(target, path), entry);
    } else if (entry.kind === "folder") await mkdir(join(target, path), { mode: entry.mode | 0o700 });
    else {
      linkCharacters.count += path.length + entry.linkTarget.length;
      if (linkCharacters.count > mostLinkCharacters) throw new ArchiveProblem("it has too many symbolic links");
      tree.links.set(path, checkedTarget(path, entry.linkTarget));
    }
  }
  if (tree.kinds.size === 0) throw new ArchiveProblem("the archive is empty");
  await createLinks(tree, signal);
  return sum;
}

/** Enough for tens of thousands of links. All of them are judged at once, which must not take long. */
const mostLinkCharacters = 4 * 1024 * 1024;

interface Tree {
  readonly target: string;
  /** By path inside the folder; the folder itself, or the only file, is the empty path. */
  readonly kinds: Map<string, TarEntry["kind"]>;
  readonly links: Map<string, string>;
}

/** Returns the entry's path inside the folder. The path is new, and its parent is a folder that came before it in the archive. */
function place({ kinds }: Tree, entry: TarEntry): string {
  const shown = quoted(entry.name);
  if (kinds.size === 0) {
    if (entry.kind === "file" || (entry.kind === "folder" && /^\.\/?$/.test(entry.name))) return "";
    throw new ArchiveProblem(`it begins with ${shown}`);
  }
  const path = entry.name.replace(/^\.\//, "").replace(/\/$/, "");
  if (!isPlainPath(path)) throw new ArchiveProblem(`${shown} is not a plain name`);
  const parent = posix.dirname(path);
  if (kinds.get(parent === "." ? "" : parent) !== "folder") throw new ArchiveProblem(`${shown} is in no folder`);
  if (kinds.has(path)) throw new ArchiveProblem(`${shown} occurs twice`);
  return path;
}

/** The limits of Linux: https://man7.org/linux/man-pages/man7/path_resolution.7.html */
const longestPathBytes = 4095;
const longestNameBytes = 255;
/** A real folder has far fewer levels. Programs that visit a deeper one may fail, even the one that removes it. */
const mostLevels = 200;

function isPlainPath(path: string): boolean {
  if (!isShortLine(path)) return false;
  const names = path.split("/");
  return names.length <= mostLevels && names.every((name) => name !== "" && name !== "." && name !== "..");
}

/** Whether each name in the path is short enough for a disk, and the path is one printable line. */
const isShortLine = (path: string): boolean =>
  Buffer.byteLength(path) <= longestPathBytes &&
  isPlainLine(path) &&
  path.split("/").every((name) => Buffer.byteLength(name) <= longestNameBytes);

function checkedTarget(path: string, target: string): string {
  if (target !== "" && isShortLine(target)) return target;
  throw new ArchiveProblem(`the target of the link ${quoted(path)} is not a plain path`);
}

async function writeFile(path: string, { mode, contents }: TarEntry): Promise<number> {
  // Fails if anything exists there, including a link.
  await using file = await open(path, "wx", mode | 0o600);
  let bytes = 0;
  for await (const chunk of contents) {
    await file.writeFile(chunk);
    bytes += chunk.length;
  }
  return bytes;
}

/** Links come last, so that nothing is ever written through one. */
async function createLinks({ target, links }: Tree, signal: AbortSignal): Promise<void> {
  const outside = linkThatLeadsOut(links);
  if (outside !== undefined) {
    const where = quoted(links.get(outside) ?? "");
    throw new ArchiveProblem(`the link ${quoted(outside)} leads out of the folder, to ${where}`);
  }
  for (const [path, linkTarget] of links) {
    signal.throwIfAborted();
    await symlink(linkTarget, join(target, path));
  }
}
