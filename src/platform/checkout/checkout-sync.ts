import { ClusterError } from "../../errors.ts";
import { commandName, optionName, runCommand } from "../../references.ts";
import type { Variant } from "../../model/cluster-record.ts";
import type { Connection, RemoteResult } from "../../ssh/connection/connection.ts";
import type { FileSums } from "../../system/files/listed-file.ts";
import { outsideLine, outsideLines, outsideReason } from "../../system/printable.ts";
import type { Layout } from "../layouts/layout.ts";
import {
  type CheckoutState,
  type RemoteSums,
  changedFiles,
  isSettled,
  parseState,
  parseSums,
  withSent,
} from "./checkout-manifest.ts";
import {
  type Checkout,
  type SyncFile,
  type SyncPlan,
  checkoutArchive,
  isInPlace,
  pathsBelow,
  syncPlan,
} from "./checkout.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { layoutLines, valuesOfEach } from "../readiness/node-question.ts";
import treesFile from "./sync-trees.sh" with { type: "text" };
import stateFile from "./sync-state.sh" with { type: "text" };
import sumsFile from "./sync-sums.sh" with { type: "text" };
import unpackFile from "./sync-unpack.sh" with { type: "text" };

export interface SyncTarget {
  readonly connection: Connection;
  /** Such as `master_0`, for error messages. */
  readonly reference: string;
  /** The layouts that the node may have. */
  readonly layouts: readonly Layout[];
  /** The variant with which the cluster was created. */
  readonly variant: Variant;
  /** Compare the contents of all files, not only of those with another size or time. */
  readonly checksum: boolean;
  /** Shared by the targets of one sync. */
  readonly sumOf: FileSums;
}

export interface SyncReport {
  /** Number of the checkout's files that the master now has. */
  readonly files: number;
  /** Number of those files that had to be sent, and their bytes. */
  readonly sentFiles: number;
  readonly sentBytes: number;
}

/**
 * Syncs a checkout to one master, all or nothing, and sends only what has changed. Throws `not-installed`,
 * `bad-usage` (the checkout doesn't fit the cluster), `remote-command-failed`, `transfer-failed` or
 * `connection-failed`.
 */
export async function syncCheckoutToNode(
  checkout: Checkout,
  target: SyncTarget,
  signal: AbortSignal,
): Promise<SyncReport> {
  const state = await askState(target, signal);
  const { layout, variant, manifest, platform } = state;
  if (checkout.platform !== undefined && platform !== undefined && checkout.platform !== platform)
    throw otherName(checkout, platform);
  const whole = withSent(syncPlan(checkout, variant, layout), state);
  const askSums = (files: readonly SyncFile[]): Promise<RemoteSums> =>
    askForSums(files, target, layout, signal);
  const plan = await changedFiles(whole, { ...target, manifest, askSums }, signal);
  if (!isSettled(plan, state)) await unpack(plan, target, signal);
  return {
    files: whole.files.length,
    sentFiles: plan.files.length,
    sentBytes: plan.files.reduce((sum, file) => sum + file.sizeBytes, 0),
  };
}

const limitMs = 600_000;
/** A platform may have unpacked very many files in its folder. */
const mostStateCharacters = 32 * 1024 * 1024;

const otherName = ({ folder, platform = "" }: Checkout, installed: string): ClusterError =>
  new ClusterError(
    "bad-usage",
    `${folder} is the platform ${platform}, but the cluster's platform is ${outsideLine(installed)}.`,
    { hint: "Sync the cluster's folder." },
  );

async function askState(
  { connection, reference, layouts, variant }: SyncTarget,
  signal: AbortSignal,
): Promise<CheckoutState> {
  const argv = stateCommand(layouts);
  const task = "checking what is installed";
  const result = await connection.run(
    { argv, sudo: true, limitMs, task, isOutputHidden: true, keptCharacters: mostStateCharacters },
    signal,
  );
  if (result.status === syncStatuses.failed || result.status === syncStatuses.notInstalled)
    throw syncFailed(reference, result);
  if (result.status !== 0) {
    throw new ClusterError(
      "remote-command-failed",
      `Cannot find out what is installed on ${reference}: ${reasonOf(result)}.`,
      {
        hint: `Inspect that node: ${commandName("run")} with ${optionName("noTestEnv")} opens a shell on it.`,
        facts: { node: reference, status: result.status, output: outsideLines(result.stderr, 5) },
      },
    );
  }
  const state = parseState(result.stdout, layouts, variant);
  if (typeof state === "string") throw notInstalled(reference, state);
  return state;
}

async function askForSums(
  files: readonly SyncFile[],
  { connection, reference }: SyncTarget,
  layout: Layout,
  signal: AbortSignal,
): Promise<RemoteSums> {
  const argv = sumsCommand(files, layout);
  const stdin = sumsInput(files);
  const task = "comparing files";
  const result = await connection.run(
    { argv, sudo: true, stdin, limitMs, task, keptCharacters: mostStateCharacters },
    signal,
  );
  if (result.status === 0) return parseSums(result.stdout);
  throw syncFailed(reference, result);
}

async function unpack(
  plan: SyncPlan,
  { connection, reference }: SyncTarget,
  signal: AbortSignal,
): Promise<void> {
  const argv = unpackCommand(plan);
  const stdin = checkoutArchive(plan);
  const result = await connection.run(
    { argv, sudo: true, stdin, limitMs, task: "syncing the checkout" },
    signal,
  );
  if (result.status !== 0) throw syncFailed(reference, result);
}

function syncFailed(reference: string, result: RemoteResult): ClusterError {
  if (result.status === syncStatuses.notInstalled) return notInstalled(reference, reasonOf(result));
  const isFull = /no space left on device|disk quota exceeded/i.test(result.stderr);
  const reason = isFull ? "no space is left on its disk" : reasonOf(result);
  const state =
    result.status === syncStatuses.halfway
      ? "Some files on the node are new, others are not."
      : "The node still has its previous files.";
  return new ClusterError(
    "transfer-failed",
    `Cannot sync the checkout to ${reference}: ${reason}. ${state}`,
    {
      hint: "If the connection is not the cause, fix the cause, then sync again.",
      transient: result.status === syncStatuses.brokenTransfer && !isFull,
      facts: { node: reference, status: result.status },
    },
  );
}

const notInstalled = (reference: string, reason: string): ClusterError =>
  new ClusterError(
    "not-installed",
    `The platform is not installed on ${reference} yet: ${reason}.`,
    {
      hint: `${runCommand("wait")}, then sync again.`,
      facts: { node: reference },
    },
  );

const reasonOf = ({ status, stderr }: RemoteResult): string =>
  outsideReason(stderr) || `status ${status}`;

/** Exit statuses of the scripts below, besides 0. */
const syncStatuses = { notInstalled: 10, brokenTransfer: 11, failed: 12, halfway: 13 } as const;

const statuses = {
  NOT_INSTALLED: syncStatuses.notInstalled,
  BROKEN_TRANSFER: syncStatuses.brokenTransfer,
  FAILED: syncStatuses.failed,
  HALFWAY: syncStatuses.halfway,
};

const treesOf = ({ testsFolders, release }: Layout) => ({
  // The last one is a platform's whole folder.
  TESTS_FOLDER: testsFolders.at(-1) ?? "",
  LIBRARY_FOLDER: release?.bootstrapLibraryFolder ?? "",
  INTERNAL_LIBRARY: release?.internalLibrary ?? "",
});

type Argv = readonly [string, string, text: string, ...string[]];

/** Returns the command whose output `parseState` reads; see sync-state.sh. */
export function stateCommand(layouts: readonly Layout[]): Argv {
  const state = shellText(stateFile, valuesOfEach(layouts, treesOf));
  return [
    "sh",
    "-c",
    layoutLines(layouts) + shellText(treesFile, statuses) + state,
    "e2e-sync-state",
  ];
}

export function sumsCommand(files: readonly SyncFile[], layout: Layout): Argv {
  const trees = shellText(treesFile, { ...statuses, ...treesOf(layout) });
  const sums = shellText(sumsFile, { TESTS_BYTES: Buffer.byteLength(pathsIn("tests", files)) });
  return ["sh", "-c", trees + sums, "e2e-sync-sums"];
}

/** Stdin of `sumsCommand`: paths that each end with a NUL, those of the tests first. */
const sumsInput = (files: readonly SyncFile[]): string =>
  pathsIn("tests", files) + pathsIn("library", files);

const pathsIn = (tree: SyncFile["tree"], files: readonly SyncFile[]): string =>
  files
    .filter((file) => file.tree === tree)
    .map(({ path }) => `./${path}\0`)
    .join("");

/** Returns the command that reads `checkoutArchive` from stdin and makes the node's folders match the plan. */
export function unpackCommand(plan: SyncPlan): Argv {
  const { layout, list, emptiedFolders } = plan;
  const trees = shellText(treesFile, { ...statuses, ...treesOf(layout) });
  const script = shellText(unpackFile, {
    NEEDS_LIBRARY: needsLibrary(plan) ? "yes" : "no",
    IN_PLACE: isInPlace(layout) ? "yes" : "no",
    LIST: list,
  });
  return ["sh", "-c", trees + script, "e2e-sync-unpack", ...emptiedFolders];
}

const needsLibrary = ({ files, unchanged, removedFiles }: SyncPlan): boolean =>
  [...files, ...unchanged].some((file) => file.tree === "library") ||
  pathsBelow("library", removedFiles).length > 0;
