import { access, constants, lstat, readdir, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { Checked } from "./checked.ts";
import { errorCode } from "./error-code.ts";

/** A file somewhere below a listed folder. Symbolic links are followed: `source` is where the contents are. */
export interface ListedFile {
  /** Absolute, without symbolic links. */
  readonly source: string;
  /** Relative to the listed folder, with `/`. */
  readonly path: string;
  /** Permission bits, such as 0o644. */
  readonly mode: number;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
}

export interface ListingRules {
  /** The folder that symbolic links must not lead out of. */
  readonly boundary: string;
  readonly isSkipped: (name: string) => boolean;
}

/**
 * All files below `folder`, sorted by path, so that the same folder gives the same list everywhere. Links that lead out of the boundary,
 * nowhere or in a circle, unreadable files and what is neither file nor folder are problems.
 */
export async function listFiles(folder: string, rules: ListingRules): Promise<Checked<readonly ListedFile[]>> {
  const listing: Listing = { root: folder, boundary: await realpath(rules.boundary), rules, files: [], problems: [] };
  await tellingFailures(listing, folder, () => visitFolder(listing, "", []));
  if (listing.problems.length > 0) return { problems: listing.problems };
  return { value: listing.files.toSorted((one, other) => (one.path < other.path ? -1 : 1)) };
}

interface Listing {
  readonly root: string;
  readonly boundary: string;
  readonly rules: ListingRules;
  readonly files: ListedFile[];
  readonly problems: string[];
}

async function visitFolder(listing: Listing, path: string, above: readonly string[]): Promise<void> {
  const folder = join(listing.root, path);
  const real = await realpath(folder);
  if (above.includes(real))
    return void listing.problems.push(`${folder} is a symbolic link to a folder that it is in.`);
  for (const name of (await readdir(folder)).toSorted()) {
    if (listing.rules.isSkipped(name)) continue;
    const place = path === "" ? name : `${path}/${name}`;
    await tellingFailures(listing, join(folder, name), () => visit(listing, place, [...above, real]));
  }
}

async function tellingFailures(listing: Listing, place: string, task: () => Promise<void>): Promise<void> {
  try {
    await task();
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined) throw error;
    listing.problems.push(`${place} cannot be read (${code}).`);
  }
}

async function visit(listing: Listing, path: string, above: readonly string[]): Promise<void> {
  const place = join(listing.root, path);
  const source = await target(place);
  if (source === undefined) return void listing.problems.push(`${place} is a symbolic link that leads nowhere.`);
  if (!isInside(source, listing.boundary)) {
    return void listing.problems.push(
      `${place} is a symbolic link that leads out of ${listing.rules.boundary}, to ${source}.`,
    );
  }
  const information = await stat(source);
  if (information.isDirectory()) return visitFolder(listing, path, above);
  if (!information.isFile()) return void listing.problems.push(`${place} is neither a file nor a folder.`);
  await access(source, constants.R_OK);
  const { mode, size, mtimeMs } = information;
  listing.files.push({ source, path, mode: mode & 0o777, sizeBytes: size, modifiedMs: mtimeMs });
}

async function target(place: string): Promise<string | undefined> {
  const information = await lstat(place);
  return realpath(place).catch((error: unknown) => {
    if (information.isSymbolicLink()) return undefined;
    throw error;
  });
}

const isInside = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
