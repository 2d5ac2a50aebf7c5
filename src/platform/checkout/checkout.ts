import { join } from "node:path";
import { ClusterError } from "../../errors.ts";
import type { Variant } from "../../model/cluster-record.ts";
import { type Checked, problem } from "../../model/checked.ts";
import { type ListedFile, listFiles } from "../../system/files/list-files.ts";
import { readListed } from "../../system/files/listed-file.ts";
import { folderProblem, isAccessible, isFolder } from "../../system/files/private-file.ts";
import { gather } from "../../system/files/byte-source.ts";
import { type TarFile, tarStream, textFile } from "../../system/files/tar.ts";
import { layouts } from "../layouts/find-layout.ts";
import type { Layout } from "../layouts/layout.ts";

/** A checkout of the platform's repository on this machine, or the folder of another platform. */
export interface Checkout {
  /** Absolute path. */
  readonly folder: string;
  readonly variant: Variant;
  /** The platform's name in platform.yaml; undefined for a checkout. */
  readonly platform?: string;
  /** The contents for each layout whose tests are in the checkout. */
  readonly contents: ReadonlyMap<Layout["name"], CheckoutContents>;
}

interface CheckoutContents {
  /** For the folder of a platform, all its files. */
  readonly tests: readonly ListedFile[];
  /** Empty if the checkout has no bootstrap library. */
  readonly library: readonly ListedFile[];
}

/**
 * Lists the files to sync from `folder` (absolute). If it isn't a checkout, the problem names the
 * paths that were tried. Every symbolic link that leaves the checkout is a problem.
 */
export async function readCheckout(
  folder: string,
  signal: AbortSignal,
): Promise<Checked<Checkout>> {
  const unusable = await folderProblem(folder);
  if (unusable !== undefined) return problem(`${unusable}.`);
  if (await isAccessible(join(folder, "platform.yaml"))) return await readPlatform(folder, signal);
  const releases = layouts.filter(({ release }) => release !== undefined);
  const present = await Promise.all(
    releases.map((layout) => isFolder(testsSource(folder, layout))),
  );
  if (!present.includes(true)) {
    const sources = releases.map((layout) => testsSource(".", layout)).join(" nor ");
    return problem(
      `${folder} is neither a platform's folder, with platform.yaml, nor a checkout: it has neither ${sources}.`,
    );
  }
  const contents = new Map<Layout["name"], CheckoutContents>();
  const problems: string[] = [];
  for (const layout of releases.filter((_layout, index) => present[index])) {
    const tests = await list(folder, testsSource(folder, layout), signal);
    const library = await listLibrary(folder, layout, signal);
    problems.push(...(tests.problems ?? []), ...(library.problems ?? []));
    contents.set(layout.name, { tests: tests.value ?? [], library: library.value ?? [] });
  }
  const variant = await checkoutVariant(folder);
  return problems.length > 0 ? { problems } : { value: { folder, variant, contents } };
}

async function readPlatform(folder: string, signal: AbortSignal): Promise<Checked<Checkout>> {
  const { readPlatformFolder } = await import("../folder/read-folder.ts");
  const read = await readPlatformFolder(folder, signal);
  if (read.problems !== undefined) return read;
  const files = read.value.files.flatMap(({ path, mode, source }) =>
    "file" in source && !path.split("/").some(isBytecode) ? [{ ...source.file, path, mode }] : [],
  );
  const contents = new Map([["folder", { tests: files, library: [] }]] as const);
  const { name } = read.value.facts;
  return { value: { folder, variant: "none", platform: name, contents } };
}

const isBytecode = (name: string): boolean => name === "__pycache__" || name.endsWith(".pyc");

async function list(
  checkout: string,
  folder: string,
  signal: AbortSignal,
): Promise<Checked<readonly ListedFile[]>> {
  if (!(await isFolder(folder))) return { value: [] };
  return listFiles(folder, { boundary: checkout, isSkipped: isBytecode }, signal);
}

async function listLibrary(
  folder: string,
  { release }: Layout,
  signal: AbortSignal,
): Promise<Checked<readonly ListedFile[]>> {
  if (release === undefined) return { value: [] };
  return list(
    folder,
    join(folder, "packages", "bootstrap", "extra", release.internalLibrary),
    signal,
  );
}

const testsSource = (folder: string, { release }: Layout): string =>
  join(folder, "packages", release?.testsPackage ?? "", "extra");

/** An enterprise checkout builds on an open source one, which this file names. */
const checkoutVariant = async (folder: string): Promise<Variant> =>
  (await isAccessible(join(folder, "packages", "upstream.json"))) ? "enterprise" : "oss";

/**
 * The two folders on a node that a checkout is synced to: the layout's tests folder, and its bootstrap library. The
 * folder of a platform is synced to the node's copy of it, which is then the first one.
 */
type SyncTree = "tests" | "library";

/** A file of the checkout. Its path is relative to the tree. */
export interface SyncFile extends ListedFile {
  readonly tree: SyncTree;
  /** 0o644, or 0o755 for an executable: a repository records nothing else. */
  readonly mode: 0o644 | 0o755;
}

/**
 * Which of a master's lists of sent files a sync reads and replaces: tests beside the cluster's own
 * ones have a list of their own.
 */
type SentList = "own" | "beside";

/** `<tree>/<path>` of a file. */
export const keyOf = ({ tree, path }: Pick<SyncFile, "tree" | "path">): string => `${tree}/${path}`;

/** The changes that a sync makes on one master. */
export interface SyncPlan {
  readonly layout: Layout;
  readonly list: SentList;
  /** The files to send. */
  readonly files: readonly SyncFile[];
  /** Files that the node already has, byte for byte: they stay, even if the removal covers them. */
  readonly unchanged: readonly SyncFile[];
  /** Folders, relative to the tests folder (`.` is the tests folder), whose own `*.py` files are removed first. */
  readonly emptiedFolders: readonly string[];
  /** Folders, relative to the tests folder, that are removed completely first. */
  readonly removedFolders: readonly string[];
  /** Keys of files that an earlier sync has sent, and that the checkout no longer has. They are removed too. */
  readonly removedFiles: readonly string[];
  /** Keys of files in the removed folders that stay, because the other list has them. */
  readonly keptFiles: readonly string[];
}

/**
 * Whether a node's files are replaced one by one, not with their whole folder: services of the platform may work in it,
 * or have it as a volume.
 */
export const isInPlace = ({ release }: Layout): boolean => release === undefined;

/** Whether the entry at this path, relative to the tests folder, is removed before the plan's files arrive. */
export function isRemovedFirst(
  { emptiedFolders, removedFolders }: SyncPlan,
  path: string,
): boolean {
  const slash = path.lastIndexOf("/");
  const folder = slash < 0 ? "." : path.slice(0, slash);
  if (path.endsWith(".py") && emptiedFolders.includes(folder)) return true;
  return removedFolders.some((removed) => path.startsWith(`${removed}/`));
}

/** Plans which files go where. Throws `bad-usage` if the checkout holds nothing for this layout. */
export function syncPlan(checkout: Checkout, nodeVariant: Variant, layout: Layout): SyncPlan {
  const contents = checkout.contents.get(layout.name);
  if (contents === undefined) throw otherPlatform(checkout, layout);
  const tests = contents.tests.map((file) => inTree(file, "tests"));
  if (isInPlace(layout)) return folderPlan(tests, layout);
  const isMixed = checkout.variant === "oss" && nodeVariant === "enterprise";
  if (isMixed) return mixedPlan(tests, layout);
  const library = contents.library.map((file) => inTree(file, "library"));
  const files = [...tests, ...library];
  return {
    ...emptyPlan,
    layout,
    list: "own",
    files,
    emptiedFolders: ["."],
    removedFolders: foldersOf(tests),
  };
}

function otherPlatform({ folder, platform }: Checkout, layout: Layout): ClusterError {
  const needsFolder = isInPlace(layout);
  const message = needsFolder
    ? `${folder} is a checkout, but the cluster's platform is a folder with platform.yaml.`
    : platform === undefined
      ? `${testsSource(folder, layout)} does not exist, but the cluster's tests have that name.`
      : `${folder} is the platform ${platform}, but the cluster was created from an artifact.`;
  const hint = needsFolder
    ? "Sync the cluster's folder."
    : "Sync a checkout of the installed release.";
  return new ClusterError("bad-usage", message, { hint });
}

/**
 * Of the folder's own `tests`, the checkout decides as it does of other tests. What `install` may
 * have written elsewhere stays.
 */
function folderPlan(files: readonly SyncFile[], layout: Layout): SyncPlan {
  const tests = files.filter(({ path }) => path.startsWith(testsPrefix));
  const below = tests.map((file) => ({ ...file, path: file.path.slice(testsPrefix.length) }));
  return {
    ...emptyPlan,
    layout,
    list: "own",
    files,
    emptiedFolders: tests.length === 0 ? [] : ["tests"],
    removedFolders: foldersOf(below).map((name) => testsPrefix + name),
  };
}

const testsPrefix = "tests/";

const emptyPlan = { unchanged: [], removedFiles: [], keptFiles: [] };

/** The folders at the top that these files are in: the checkout decides about all that is in them. */
function foldersOf(files: readonly SyncFile[]): readonly string[] {
  const names = files
    .filter(({ path }) => path.includes("/"))
    .map(({ path }) => path.slice(0, path.indexOf("/")));
  return [...new Set(names)];
}

/** For open source tests on an enterprise cluster: they go beside its own tests and share their `conftest.py`. */
function mixedPlan(tests: readonly SyncFile[], layout: Layout): SyncPlan {
  const files = tests
    .filter((file) => file.path !== "conftest.py")
    .map((file) =>
      file.path.startsWith("util/") ? file : { ...file, path: `${openSourceFolder}/${file.path}` },
    );
  const hasUtil = files.some((file) => file.path.startsWith("util/"));
  const folders = foldersOf(tests).filter((name) => name !== "util");
  const beside = ["util", ...folders].map((name) => `${openSourceFolder}/${name}`);
  const removedFolders = [...beside, ...(hasUtil ? ["util"] : [])];
  return {
    ...emptyPlan,
    layout,
    list: "beside",
    files,
    emptiedFolders: [openSourceFolder],
    removedFolders,
  };
}

const openSourceFolder = "open_source_tests";

const inTree = (file: ListedFile, tree: SyncTree): SyncFile => ({
  ...file,
  tree,
  mode: (file.mode & 0o100) === 0 ? 0o644 : 0o755,
});

/**
 * The archive that the unpacking script reads from its stdin; see sync-unpack.sh. It contains the
 * files below `tests/` and `library/`; lists of paths, which each end with a NUL; and finally an
 * empty file `complete`, without which the script rejects the archive, because tar doesn't notice
 * an archive that breaks off between two files. Each call reads the files again, so that each
 * master has a stream of its own.
 */
export const checkoutArchive = (plan: SyncPlan): AsyncGenerator<Uint8Array, void, undefined> =>
  gather(
    tarStream([...plan.files.map(member), ...listsOf(plan), textMember("complete", "")]),
    leastChunkBytes,
  );

const leastChunkBytes = 128 * 1024;

const member = (file: SyncFile): TarFile => ({
  name: `${file.tree}/${file.path}`,
  mode: file.mode,
  modifiedMs: file.modifiedMs,
  sizeBytes: file.sizeBytes,
  contents: () => readListed(file),
});

function listsOf(plan: SyncPlan): readonly TarFile[] {
  const { files, unchanged, removedFolders, removedFiles, keptFiles } = plan;
  const restored = unchanged.filter(
    (file) => file.tree === "tests" && isRemovedFirst(plan, file.path),
  );
  const sentTo = (tree: SyncTree): readonly string[] =>
    [...files, ...unchanged]
      .filter((file) => file.tree === tree)
      .map((file) => `sent ${plan.list} ${keyOf(file)}`);
  const lists: Readonly<Record<string, readonly string[]>> = {
    "removed-tests": [
      ...(isInPlace(plan.layout) ? [] : removedFolders),
      ...pathsBelow("tests", removedFiles),
    ],
    "removed-library": pathsBelow("library", removedFiles),
    unchanged: [...restored.map(({ path }) => path), ...pathsBelow("tests", keptFiles)],
    "sent-tests": sentTo("tests"),
    "sent-library": sentTo("library"),
  };
  return Object.entries(lists).map(([name, paths]) =>
    textMember(name, paths.map((path) => `${path}\0`).join("")),
  );
}

/** The paths of those keys that are in a tree. */
export const pathsBelow = (tree: SyncTree, keys: readonly string[]): readonly string[] =>
  keys.filter((key) => key.startsWith(`${tree}/`)).map((key) => key.slice(tree.length + 1));

const textMember = (name: string, text: string): TarFile =>
  textFile({ name, mode: 0o600, modifiedMs: 0, text });
