import { mkdir, open, symlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { quoted } from "../../errors.ts";
import { isPlainLine } from "../printable.ts";
import { type ArchiveLimits, ArchiveProblem } from "./archive-problem.ts";
import { leadsOut } from "./leads-out.ts";
import { readTar, type TarEntry } from "./read-tar.ts";

export interface Unpacked {
  readonly files: number;
  readonly bytes: number;
}

/**
 * Unpacks an archive of one file, whatever its name, or of one folder named `.`, as `target`. Nothing may exist there, and nobody else may write to
 * the folder around it. Writes nowhere else, and creates no links that lead out of the folder. The umask applies to all permissions, and this user
 * can read and write everything. Throws `ArchiveProblem`, and leaves what it has written.
 */
export async function unpackTar(
  archive: AsyncIterable<Uint8Array>,
  target: string,
  limits: ArchiveLimits,
): Promise<Unpacked> {
  const sum = { files: 0, bytes: 0 };
  const tree: Tree = { target, kinds: new Map(), links: new Map() };
  for await (const entry of readTar(archive, limits)) {
    const path = place(tree, entry);
    tree.kinds.set(path, entry.kind);
    if (entry.kind === "file") {
      sum.files += 1;
      sum.bytes += await writeFile(join(target, path), entry);
    } else if (entry.kind === "folder") await mkdir(join(target, path), { mode: entry.mode | 0o700 });
    else tree.links.set(path, entry.linkTarget);
  }
  if (tree.kinds.size === 0) throw new ArchiveProblem("the archive is empty");
  await createLinks(tree);
  return sum;
}

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
const longestPath = 4096;
const longestNameBytes = 255;

function isPlainPath(path: string): boolean {
  if (path.length > longestPath || !isPlainLine(path)) return false;
  return path
    .split("/")
    .every((name) => name !== "" && name !== "." && name !== ".." && Buffer.byteLength(name) <= longestNameBytes);
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
async function createLinks({ target, links }: Tree): Promise<void> {
  for (const [path, linkTarget] of links) {
    if (linkTarget === "" || linkTarget.length > longestPath || !isPlainLine(linkTarget)) {
      throw new ArchiveProblem(`the target of the link ${quoted(path)} is not a plain path`);
    }
    if (leadsOut(path, links)) {
      throw new ArchiveProblem(`the link ${quoted(path)} leads out of the folder, to ${quoted(linkTarget)}`);
    }
    await symlink(linkTarget, join(target, path));
  }
}
