import type { Variant } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import type { ListedFile } from "../../system/files/list-files.ts";
import type { Checkout } from "./checkout.ts";
import { testsSource } from "./checkout.ts";
import type { Layout } from "../layout.ts";

/** The two places on a master that a checkout is synced to: the layout's tests folder, and its bootstrap library. */
type SyncPlace = "tests" | "library";

export interface SyncFile {
  /** Absolute path on this machine. */
  readonly source: string;
  readonly place: SyncPlace;
  /** Relative to the place, with `/` as separator. */
  readonly path: string;
  /** 0o644, or 0o755 for an executable: a repository records nothing else. */
  readonly mode: 0o644 | 0o755;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
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

/** Plans which files go where. Fails as `bad-usage` if the checkout holds nothing for this layout. */
export function syncPlan(checkout: Checkout, nodeVariant: Variant, layout: Layout): SyncPlan {
  const contents = checkout.contents.get(layout.name);
  if (contents === undefined) {
    throw new ClusterError(
      "bad-usage",
      `${testsSource(checkout.folder, layout)} does not exist, but the cluster's tests have that name.`,
      { hint: "Sync a checkout of the installed release." },
    );
  }
  const tests = contents.tests.map((file) => placed(file, "tests"));
  const isMixed = checkout.variant === "oss" && nodeVariant === "enterprise";
  if (isMixed) return mixedPlan(tests, layout);
  const library = contents.library.map((file) => placed(file, "library"));
  return { layout, files: [...tests, ...library], unchanged: [], emptiedFolders: ["."], removedFolders: [] };
}

/** For open source tests on an enterprise cluster: they stand beside the cluster's own and share its `conftest.py`; the library stays untouched. */
function mixedPlan(tests: readonly SyncFile[], layout: Layout): SyncPlan {
  const files = tests
    .filter((file) => file.path !== "conftest.py")
    .map((file) => (file.path.startsWith("util/") ? file : { ...file, path: `${openSourceFolder}/${file.path}` }));
  const hasUtil = files.some((file) => file.path.startsWith("util/"));
  const removedFolders = [`${openSourceFolder}/util`, ...(hasUtil ? ["util"] : [])];
  return { layout, files, unchanged: [], emptiedFolders: [openSourceFolder], removedFolders };
}

const openSourceFolder = "open_source_tests";

const placed = ({ source, path, mode, sizeBytes, modifiedMs }: ListedFile, place: SyncPlace): SyncFile => ({
  source,
  place,
  path,
  mode: (mode & 0o100) === 0 ? 0o644 : 0o755,
  sizeBytes,
  modifiedMs,
});
