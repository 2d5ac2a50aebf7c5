import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../errors.ts";
import type { Variant } from "../../model/cluster-record.ts";
import { type Checked, problem } from "../../model/checked.ts";
import { type ListedFile, listFiles } from "../../system/files/list-files.ts";
import { readListed } from "../../system/files/listed-file.ts";
import { isAccessible, isFolder } from "../../system/files/private-file.ts";
import { gather } from "../../system/files/byte-source.ts";
import { type TarFile, tarStream, textFile } from "../../system/files/tar.ts";
import { layouts } from "../layouts/find-layout.ts";
import type { Layout } from "../layouts/layout.ts";

/** A checkout of the platform's repository on this machine, or the folder of another platform, which has tests too. */
export interface Checkout {
  /** Absolute path. */
  readonly folder: string;
  readonly variant: Variant;
  /** The contents for each layout whose tests are in the checkout. */
  readonly contents: ReadonlyMap<Layout["name"], CheckoutContents>;
}

interface CheckoutContents {
  readonly tests: readonly ListedFile[];
  /** Empty if the checkout has no bootstrap library. */
  readonly library: readonly ListedFile[];
}

/**
 * Lists the files to sync from `folder` (absolute). If it isn't a checkout, the problem names the paths that were tried. Every symbolic link that
 * leaves the checkout is a problem.
 */
export async function readCheckout(folder: string, signal: AbortSignal): Promise<Checked<Checkout>> {
  const information = await stat(folder).catch(() => undefined);
  if (information?.isDirectory() !== true) return problem(`The folder ${folder} does not exist.`);
  const present = await Promise.all(layouts.map((layout) => isFolder(testsSource(folder, layout))));
  const isPlatform = await isAccessible(join(folder, platformFileName));
  const found = layouts.filter((layout, index) => present[index] && (layout.release === undefined) === isPlatform);
  if (found.length === 0) {
    const own = layouts.filter((layout) => (layout.release === undefined) === isPlatform);
    const sources = own.map((layout) => testsSource(folder, layout)).join(" nor ");
    const lack = isPlatform
      ? `${folder} has no tests: there is no ${sources}.`
      : `${folder} is not a checkout of the platform: it has neither ${sources}.`;
    return problem(lack);
  }
  const contents = new Map<Layout["name"], CheckoutContents>();
  const problems: string[] = [];
  for (const layout of found) {
    const tests = await list(folder, testsSource(folder, layout), signal);
    const library = await listLibrary(folder, layout, signal);
    problems.push(...(tests.problems ?? []), ...(library.problems ?? []));
    contents.set(layout.name, { tests: tests.value ?? [], library: library.value ?? [] });
  }
  const variant = isPlatform ? "none" : await checkoutVariant(folder);
  return problems.length > 0 ? { problems } : { value: { folder, variant, contents } };
}

async function list(checkout: string, folder: string, signal: AbortSignal): Promise<Checked<readonly ListedFile[]>> {
  if (!(await isFolder(folder))) return { value: [] };
  const isSkipped = (name: string): boolean => name === "__pycache__" || name.endsWith(".pyc");
  return listFiles(folder, { boundary: checkout, isSkipped }, signal);
}

async function listLibrary(
  folder: string,
  { release }: Layout,
  signal: AbortSignal,
): Promise<Checked<readonly ListedFile[]>> {
  if (release === undefined) return { value: [] };
  return list(folder, join(folder, "packages", "bootstrap", "extra", release.internalLibrary), signal);
}

const platformFileName = "platform.yaml";

const testsSource = (folder: string, { release }: Layout): string =>
  release === undefined ? join(folder, "tests") : join(folder, "packages", release.testsPackage, "extra");

/** An enterprise checkout builds on an open source one, which this file names. */
const checkoutVariant = async (folder: string): Promise<Variant> =>
  (await isAccessible(join(folder, "packages", "upstream.json"))) ? "enterprise" : "oss";

/** The two folders on a master that a checkout is synced to: the layout's tests folder, and its bootstrap library. */
type SyncTree = "tests" | "library";

/** A file of the checkout. Its path is relative to the tree. */
export interface SyncFile extends ListedFile {
  readonly tree: SyncTree;
  /** 0o644, or 0o755 for an executable: a repository records nothing else. */
  readonly mode: 0o644 | 0o755;
}

/** The changes that a sync makes on one master. */
export interface SyncPlan {
  readonly layout: Layout;
  /** The files to send. */
  readonly files: readonly SyncFile[];
  /** Files that the node already has, byte for byte: they stay, even if the removal covers them. */
  readonly unchanged: readonly SyncFile[];
  /** Folders, relative to the tests folder (`.` is the tests folder), whose own `*.py` files are removed first. */
  readonly emptiedFolders: readonly string[];
  /** Folders, relative to the tests folder, that are removed completely first. */
  readonly removedFolders: readonly string[];
}

/** Whether the entry at this path, relative to the tests folder, is removed before the plan's files arrive. */
export function isRemovedFirst({ emptiedFolders, removedFolders }: SyncPlan, path: string): boolean {
  const slash = path.lastIndexOf("/");
  const folder = slash < 0 ? "." : path.slice(0, slash);
  if (path.endsWith(".py") && emptiedFolders.includes(folder)) return true;
  return removedFolders.some((removed) => path.startsWith(`${removed}/`));
}

/** Plans which files go where. Throws `bad-usage` if the checkout holds nothing for this layout. */
export function syncPlan(checkout: Checkout, nodeVariant: Variant, layout: Layout): SyncPlan {
  const contents = checkout.contents.get(layout.name);
  if (contents === undefined) {
    throw new ClusterError(
      "bad-usage",
      `${testsSource(checkout.folder, layout)} does not exist, but the cluster's tests have that name.`,
      { hint: "Sync a checkout of the installed release." },
    );
  }
  const tests = contents.tests.map((file) => inTree(file, "tests"));
  const isMixed = checkout.variant === "oss" && nodeVariant === "enterprise";
  if (isMixed) return mixedPlan(tests, layout);
  const library = contents.library.map((file) => inTree(file, "library"));
  return { layout, files: [...tests, ...library], unchanged: [], emptiedFolders: ["."], removedFolders: [] };
}

/** For open source tests on an enterprise cluster: they go beside its own tests and share their `conftest.py`. */
function mixedPlan(tests: readonly SyncFile[], layout: Layout): SyncPlan {
  const files = tests
    .filter((file) => file.path !== "conftest.py")
    .map((file) => (file.path.startsWith("util/") ? file : { ...file, path: `${openSourceFolder}/${file.path}` }));
  const hasUtil = files.some((file) => file.path.startsWith("util/"));
  const removedFolders = [`${openSourceFolder}/util`, ...(hasUtil ? ["util"] : [])];
  return { layout, files, unchanged: [], emptiedFolders: [openSourceFolder], removedFolders };
}

const openSourceFolder = "open_source_tests";

const inTree = (file: ListedFile, tree: SyncTree): SyncFile => ({
  ...file,
  tree,
  mode: (file.mode & 0o100) === 0 ? 0o644 : 0o755,
});

/**
 * The archive that the unpacking script reads from its stdin. It contains the files below `tests/` and `library/`; the list `unchanged` of files to
 * restore after the removal; and finally an empty file `complete`, without which the script rejects the archive, because tar doesn't notice an
 * archive that breaks off between two files. Each call reads the files again, so that each master has a stream of its own.
 */
export const checkoutArchive = (plan: SyncPlan): AsyncGenerator<Uint8Array, void, undefined> =>
  gather(tarStream([...plan.files.map(member), ...unchangedList(plan), textMember("complete", "")]), leastChunkBytes);

const leastChunkBytes = 128 * 1024;

const member = (file: SyncFile): TarFile => ({
  name: `${file.tree}/${file.path}`,
  mode: file.mode,
  modifiedMs: file.modifiedMs,
  sizeBytes: file.sizeBytes,
  contents: () => readListed(file),
});

/** Lists the unchanged files that the preceding removal deletes: paths that each end with a NUL. All of them are tests. */
function unchangedList(plan: SyncPlan): readonly TarFile[] {
  const paths = plan.unchanged.filter((file) => file.tree === "tests" && isRemovedFirst(plan, file.path));
  return paths.length === 0 ? [] : [textMember("unchanged", paths.map(({ path }) => `${path}\0`).join(""))];
}

const textMember = (name: string, text: string): TarFile => textFile({ name, mode: 0o600, modifiedMs: 0, text });
