import { accessSync, constants, statSync } from "node:fs";
import { lstat, readdir, realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { systemReason } from "../../errors.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Checked, problem } from "../../model/checked.ts";
import { plainLine } from "../printable.ts";
import { type FileFacts, factsOf } from "./listed-file.ts";
import { errorCode } from "./private-file.ts";

/** A file somewhere below a listed folder. Symbolic links are followed: `source` is the location of the contents. */
export interface ListedFile extends FileFacts {
  /** Relative to the listed folder, with `/`. */
  readonly path: string;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
}

interface ListingRules {
  /** Symbolic links must not lead out of this folder; default: the listed folder. */
  readonly boundary?: string;
  /** Default: no entry is skipped. */
  readonly isSkipped?: (name: string) => boolean;
}

/** Links between folders make the same files appear at many paths: 40 links can make a million million. */
const mostEntries = 100_000;
const mostProblems = 20;
const mostLevels = 200;
/** The system answers for files at once, also where its disk is slow. After so many, an interrupt gets its turn. */
const entriesAtOnce = 16;

/**
 * All files below `folder`, sorted by path, so that the same folder gives the same list everywhere.
 * Each of these is a problem: a link that leads out of the boundary, dangles or is circular, an
 * unreadable file, an entry that is neither a file nor a folder, more than 200 levels, and more
 * than 100,000 entries. After 20 problems it looks no further.
 */
export async function listFiles(
  folder: string,
  { boundary = folder, isSkipped = () => false }: ListingRules,
  signal: AbortSignal,
): Promise<Checked<readonly ListedFile[]>> {
  const realBoundary = await realpath(boundary);
  const counts = { files: [], problems: [], entries: 0 };
  const listing: Listing = { root: folder, boundary, realBoundary, isSkipped, ...counts, signal };
  await catchingFailures(listing, "", async () =>
    visitFolder(listing, { path: "", source: await realpath(folder) }, []),
  );
  if (listing.entries > mostEntries) {
    return problem(
      `${folder} has more than ${mostEntries} files and folders, counted once for each link to them.`,
    );
  }
  if (listing.problems.length > 0) return { problems: listing.problems };
  return { value: listing.files.toSorted((one, other) => (one.path < other.path ? -1 : 1)) };
}

interface Listing {
  readonly root: string;
  readonly boundary: string;
  readonly realBoundary: string;
  readonly isSkipped: (name: string) => boolean;
  readonly files: ListedFile[];
  readonly problems: string[];
  /** The number of entries visited so far. */
  entries: number;
  readonly signal: AbortSignal;
}

const isCutOff = ({ entries, problems }: Listing): boolean =>
  entries > mostEntries || problems.length >= mostProblems;

/** Only real paths are used, because the system follows no more than 40 links in one path. */
async function visitFolder(
  listing: Listing,
  { path, source: real }: { readonly path: string; readonly source: string },
  above: readonly string[],
): Promise<void> {
  const report = reporterOf(listing, path);
  if (above.includes(real))
    return report((name) => `${name} is a symbolic link to one of its parent folders.`);
  if (above.length >= mostLevels) return report((name) => `${name} is too deep.`);
  const entries = await readdir(real, { withFileTypes: true });
  for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    if (listing.isSkipped(entry.name)) continue;
    listing.entries += 1;
    if (listing.entries % entriesAtOnce === 0) await nextTurn();
    listing.signal.throwIfAborted();
    if (isCutOff(listing)) return;
    const entryPath = path === "" ? entry.name : `${path}/${entry.name}`;
    await catchingFailures(listing, entryPath, async () => {
      // Only a link leads elsewhere. Among thousands of files, most need no system call.
      const source = entry.isSymbolicLink()
        ? await realpath(join(real, entry.name)).catch(() => undefined)
        : join(real, entry.name);
      await visit(listing, { path: entryPath, source }, [...above, real]);
    });
  }
}

/** Turns a failure of the system into a problem of the entry at `path`. */
async function catchingFailures(
  listing: Listing,
  path: string,
  task: () => Promise<void>,
): Promise<void> {
  try {
    await task();
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined) throw error;
    // The system's name has other bytes than what became of them in a text.
    const isOtherName = code === "ENOENT" && path.includes("\uFFFD");
    if (
      code === "ENOENT" &&
      !isOtherName &&
      path !== "" &&
      (await isGone(join(listing.root, path)))
    )
      return;
    reporterOf(
      listing,
      path,
    )(
      (name) =>
        `Cannot read ${name}: ${isOtherName ? "its name is not UTF-8" : systemReason(error)}.`,
    );
  }
}

/** Another program has removed it since its folder was read. */
const isGone = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => false,
    (error: unknown) => errorCode(error) === "ENOENT",
  );

async function visit(
  listing: Listing,
  { path, source }: { readonly path: string; readonly source: string | undefined },
  above: readonly string[],
): Promise<void> {
  const report = reporterOf(listing, path);
  if (source === undefined) return report((name) => `${name} is a broken symbolic link.`);
  if (!isInside(source, listing.realBoundary))
    return report(
      (name) => `${name} is a symbolic link to ${shown(source)}, outside ${listing.boundary}.`,
    );
  // Waiting for each answer takes four times as long as the answers of a disk.
  const information = statSync(source);
  if (information.isDirectory()) return visitFolder(listing, { path, source }, above);
  if (!information.isFile()) return report((name) => `${name} is neither a file nor a folder.`);
  accessSync(source, constants.R_OK);
  listing.files.push({ ...factsOf(source, information), path, mode: information.mode & 0o777 });
}

const longestShown = 1000;

/** The folder may come from a stranger, and names may have line breaks. */
const shown = (path: string): string => plainLine(path, longestShown);

const reporterOf =
  ({ root, problems }: Listing, path: string) =>
  (text: (name: string) => string): void =>
    void problems.push(text(shown(join(root, path))));

const isInside = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
