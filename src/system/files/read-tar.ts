import { mkdir, open, symlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { quoted } from "../../errors.ts";
import { isPlainLine } from "../printable.ts";
import { type ByteSource, byteSource } from "./byte-source.ts";
import {
  type ArchiveLimits,
  ArchiveProblem,
  type PaxRecords,
  type TarHeader,
  blockBytes,
  damaged,
  paddingAfter,
  readPaxRecords,
  readTarHeader,
} from "./tar.ts";

interface TarEntry extends Omit<TarHeader, "type"> {
  readonly kind: "file" | "folder" | "link";
  /** Empty unless the entry is a file. Whatever is left unread is skipped when the next entry is read. */
  readonly contents: AsyncIterable<Uint8Array>;
}

/**
 * Reads a POSIX archive (ustar with pax records) that an attacker may have written. Throws
 * `ArchiveProblem` for a damaged archive, for one beyond the limits, and for entries other than
 * regular files, folders and symbolic links. Source of the format:
 * https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html
 */
export async function* readTar(
  archive: AsyncIterable<Uint8Array>,
  limits: ArchiveLimits,
): AsyncGenerator<TarEntry, void, undefined> {
  await using source = byteSource(archive);
  const sum = { entries: 0, names: 0, bytes: 0 };
  for (;;) {
    const { header, records } = await nextHeader(source);
    if (header === undefined) break;
    const entry = entryOf(header, records);
    const { sizeBytes } = entry;
    sum.entries += 1;
    sum.names += entry.name.length + entry.linkTarget.length;
    sum.bytes += sizeBytes;
    if (sum.entries > limits.entries)
      throw new ArchiveProblem(`it has more than ${limits.entries} files and folders`);
    if (sum.names > mostNameCharacters) throw new ArchiveProblem("the names in it are too long");
    if (sum.bytes > limits.totalBytes)
      throw new ArchiveProblem(`it has more than ${limits.totalBytes} bytes`);
    const contents = source.stream(sizeBytes);
    yield { ...entry, contents };
    for await (const _unread of contents);
    await source.take(paddingAfter(sizeBytes));
  }
  if (!(await source.endsWithin(mostTrailingBytes))) throw damaged();
}

const mostMetadataBytes = 64 * 1024;
/** A limit for all names together, because they are kept in memory while the archive is unpacked. */
const mostNameCharacters = 32 * 1024 * 1024;
/** How many extended headers may precede an entry; a writer needs one, or two at the start of the archive. */
const mostExtendedHeaders = 4;
/** Writers fill the last record, which is 10 KiB by default. */
const mostTrailingBytes = 1024 * 1024;

/** The header is undefined at the end of the archive. */
async function nextHeader(source: ByteSource) {
  let records: PaxRecords = {};
  for (let count = 0; count <= mostExtendedHeaders; count += 1) {
    const header = readTarHeader(await source.take(blockBytes));
    if (header?.type !== "x" && header?.type !== "g") return { header, records };
    if (header.sizeBytes > mostMetadataBytes) throw damaged();
    const bytes = await source.take(header.sizeBytes);
    await source.take(paddingAfter(header.sizeBytes));
    // Records for the whole archive can't name or size any single entry.
    if (header.type === "x") records = readPaxRecords(bytes);
  }
  throw damaged();
}

const kindsByType: Readonly<Record<string, TarEntry["kind"]>> = {
  "0": "file",
  "\0": "file",
  "2": "link",
  "5": "folder",
};

function entryOf(
  header: TarHeader,
  { path, linkpath, size }: PaxRecords,
): Omit<TarEntry, "contents"> {
  const kind = kindsByType[header.type];
  const name = path ?? header.name;
  if (kind === undefined)
    throw new ArchiveProblem(`${quoted(name)} is neither a file, a folder nor a link`);
  if (size !== undefined && !/^\d{1,15}$/.test(size)) throw damaged();
  return {
    kind,
    name,
    mode: header.mode,
    linkTarget: linkpath ?? header.linkTarget,
    sizeBytes: kind === "file" ? Number(size ?? header.sizeBytes) : 0,
  };
}

export interface Unpacked {
  readonly files: number;
  readonly bytes: number;
}

/**
 * Unpacks an archive of one file, whatever its name, or of one folder named `.`, as `target`.
 * Nothing may exist there, and nobody else may write to the folder around it. Writes nowhere else,
 * and creates no links that lead out of the folder. The umask applies to all permissions, and this
 * user can read and write everything. Throws `ArchiveProblem` or the signal's reason, and leaves
 * what it has written.
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
    const path = pathIn(tree, entry);
    tree.kinds.set(path, entry.kind);
    if (entry.kind === "file") {
      sum.files += 1;
      sum.bytes += await writeFile(join(target, path), entry);
    } else if (entry.kind === "folder")
      await mkdir(join(target, path), { mode: entry.mode | 0o700 });
    else {
      linkCharacters.count += path.length + entry.linkTarget.length;
      if (linkCharacters.count > mostLinkCharacters)
        throw new ArchiveProblem("it has too many symbolic links");
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
  /** Keyed by path inside the folder. The folder itself, or the only file, has the empty path. */
  readonly kinds: Map<string, TarEntry["kind"]>;
  readonly links: Map<string, string>;
}

/** Returns the entry's path inside the folder. The path must be new, and its folder must precede it in the archive. */
function pathIn({ kinds }: Tree, entry: TarEntry): string {
  const shown = quoted(entry.name);
  if (kinds.size === 0) {
    if (entry.kind === "file" || (entry.kind === "folder" && /^\.\/?$/.test(entry.name))) return "";
    throw new ArchiveProblem(`it begins with ${shown}`);
  }
  const path = entry.name.replace(/^\.\//, "").replace(/\/$/, "");
  if (!isPlainPath(path)) throw new ArchiveProblem(`${shown} is not a plain name`);
  const parent = posix.dirname(path);
  if (kinds.get(parent === "." ? "" : parent) !== "folder")
    throw new ArchiveProblem(`${shown} is in no folder`);
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
  return (
    names.length <= mostLevels &&
    names.every((name) => name !== "" && name !== "." && name !== "..")
  );
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

/** Linux follows 40. This is enough for any real folder, and limits the work for a hostile one. */
const mostLinks = 10;

/**
 * Returns a symbolic link that leads out of its folder, also by way of other links in it, or in circles; undefined if
 * none does. Whether anything exists at a link's end doesn't matter. `links` holds the targets of all links in the
 * folder by their paths. Must hold on disks that ignore case or the form of accents too, as macOS has. Takes time in
 * proportion to the length of all paths and targets.
 */
export function linkThatLeadsOut(links: ReadonlyMap<string, string>): string | undefined {
  return firstThatEscapes(links, (path) => path) ?? firstThatEscapes(links, fold);
}

/**
 * Makes equal what any disk may take for the same name. Equates more than a disk does, which is
 * safe: the names are also compared as they are.
 */
const fold = (path: string): string =>
  isAscii(path)
    ? path.toLowerCase()
    : path.normalize("NFKD").toUpperCase().toLowerCase().normalize("NFKD");

const isAscii = (path: string): boolean => /^\p{ASCII}*$/u.test(path);

/** A link, or a folder above one. */
interface TreeNode {
  readonly parent: TreeNode | undefined;
  readonly entries: Map<string, TreeNode>;
  link?: Link;
}

interface Link {
  readonly target: string;
  /** Each link's end is looked up once. During that, no other path may lead through the link. */
  end: End | "unknown" | "outside";
}

/** The end of a path: a number of names below a node, reached after a number of links. */
interface End {
  readonly node: TreeNode;
  readonly below: number;
  readonly followed: number;
}

function firstThatEscapes(
  links: ReadonlyMap<string, string>,
  form: (path: string) => string,
): string | undefined {
  const root: TreeNode = { parent: undefined, entries: new Map() };
  const formed = [...links].map(([path, target]) => ({
    path,
    formedPath: form(path),
    target: form(target),
  }));
  for (const { formedPath, target } of formed)
    nodeOf(root, formedPath).link = { target, end: "unknown" };
  return formed.find(({ formedPath }) => follow(root, formedPath, 0) === undefined)?.path;
}

function nodeOf(root: TreeNode, path: string): TreeNode {
  let node = root;
  for (const name of path.split("/")) {
    const next = node.entries.get(name) ?? { parent: node, entries: new Map<string, TreeNode>() };
    node.entries.set(name, next);
    node = next;
  }
  return node;
}

/** Returns where the path from `start` ends; undefined if it leads out of the root. */
function follow(start: TreeNode, path: string, depth: number): End | undefined {
  let [node, below, followed] = [start, 0, 0];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    const next = below > 0 ? undefined : name === ".." ? node.parent : node.entries.get(name);
    if (name === "..") {
      if (below > 0) below -= 1;
      else if (next === undefined) return undefined;
      else node = next;
    } else if (next === undefined) below += 1;
    else if (next.link === undefined) node = next;
    else {
      const end = endOf(next, next.link, depth);
      if (end === undefined || followed + end.followed > mostLinks) return undefined;
      [node, below, followed] = [end.node, end.below, followed + end.followed];
    }
  }
  return { node, below, followed };
}

function endOf({ parent }: TreeNode, link: Link, depth: number): End | undefined {
  if (link.end === "unknown") {
    link.end = "outside";
    const isTooFar = depth === mostLinks || link.target.startsWith("/");
    const end =
      isTooFar || parent === undefined ? undefined : follow(parent, link.target, depth + 1);
    if (end !== undefined) link.end = { ...end, followed: end.followed + 1 };
  }
  return link.end === "outside" ? undefined : link.end;
}
