import { shellText } from "../../ssh/shell-text.ts";
import type { SyncFile, SyncPlan } from "./checkout.ts";
import type { Layout } from "../layouts/layout.ts";
import { layoutLines, valuesOfEach } from "../readiness/node-question.ts";
import placesFile from "./sync-places.sh" with { type: "text" };
import stateFile from "./sync-state.sh" with { type: "text" };
import sumsFile from "./sync-sums.sh" with { type: "text" };
import unpackFile from "./sync-unpack.sh" with { type: "text" };

/** Exit statuses of the scripts below, besides 0. */
export const syncStatuses = { notInstalled: 10, brokenTransfer: 11, failed: 12 } as const;

const statuses = {
  NOT_INSTALLED: syncStatuses.notInstalled,
  BROKEN_TRANSFER: syncStatuses.brokenTransfer,
  FAILED: syncStatuses.failed,
};

const placesOf = ({ testsFolders: [testsFolder, parent = ""], release }: Layout) => ({
  TESTS_FOLDER: testsFolder,
  TESTS_PARENT: parent,
  LIBRARY_FOLDER: release?.bootstrapLibraryFolder ?? "",
  INTERNAL_LIBRARY: release?.internalLibrary ?? "",
});

type Argv = readonly [string, string, text: string, ...string[]];

/** Prints what sync-state.sh says; `parseState` reads it. */
export function stateCommand(layouts: readonly Layout[]): Argv {
  const state = shellText(stateFile, valuesOfEach(layouts, placesOf));
  return ["sh", "-c", layoutLines(layouts) + shellText(placesFile, statuses) + state, "e2e-sync-state"];
}

/** Prints what sync-sums.sh says about the files that `sumsInput` names on stdin. */
export function sumsCommand(files: readonly SyncFile[], layout: Layout): Argv {
  const places = shellText(placesFile, { ...statuses, ...placesOf(layout) });
  const sums = shellText(sumsFile, { TESTS_BYTES: Buffer.byteLength(pathsIn("tests", files)) });
  return ["sh", "-c", places + sums, "e2e-sync-sums"];
}

/** Stdin of `sumsCommand`: paths that each end with a NUL, those of the tests first. */
export const sumsInput = (files: readonly SyncFile[]): string => pathsIn("tests", files) + pathsIn("library", files);

const pathsIn = (place: SyncFile["place"], files: readonly SyncFile[]): string =>
  files
    .filter((file) => file.place === place)
    .map(({ path }) => `./${path}\0`)
    .join("");

/** Reads `checkoutArchive` from stdin and makes the node's folders match the plan. */
export function unpackCommand(plan: SyncPlan): Argv {
  const { layout, emptiedFolders, removedFolders } = plan;
  const places = shellText(placesFile, { ...statuses, ...placesOf(layout) });
  const unpack = shellText(unpackFile, { NEEDS_LIBRARY: needsLibrary(plan) ? "yes" : "no" });
  const folders = [String(emptiedFolders.length), ...emptiedFolders, ...removedFolders];
  return ["sh", "-c", places + unpack, "e2e-sync-unpack", ...folders];
}

const needsLibrary = ({ files, unchanged }: SyncPlan): boolean =>
  [...files, ...unchanged].some((file) => file.place === "library");
