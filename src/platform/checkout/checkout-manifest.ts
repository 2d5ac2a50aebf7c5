import type { Variant } from "../../model/cluster-record.ts";
import { isMapping } from "../../model/reader.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import type { FileSums } from "../../system/files/listed-file.ts";
import { parseJson } from "../../system/files/read-text.ts";
import type { Layout } from "../layouts/layout.ts";
import {
  type SyncFile,
  type SyncPlan,
  isInPlace,
  isRemovedFirst,
  keyOf,
  pathsBelow,
} from "./checkout.ts";

/** An entry on a node: a file, or something that never matches a checkout's file, such as a link. */
interface RemoteEntry {
  /** Permission bits; undefined for a link. */
  readonly mode: number | undefined;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

/** The keys are `<tree>/<path>`. */
type RemoteManifest = ReadonlyMap<string, RemoteEntry>;

/** SHA-256 sums of files on a node. The keys are `<tree>/<path>`. */
export type RemoteSums = ReadonlyMap<string, string>;

/** Parses the records of `stateCommand`. Skips malformed ones; their files count as missing and are sent. */
export function parseManifest(records: string): RemoteManifest {
  const manifest = new Map<string, RemoteEntry>();
  for (const record of records.split("\0")) {
    const [, mode, size, seconds, key] =
      /^([0-7]+|link) (\d+) (-?[\d.]+) (.*)$/s.exec(record) ?? [];
    if (key === undefined) continue;
    const bits = mode === "link" ? undefined : Number.parseInt(mode ?? "", 8);
    manifest.set(key, { mode: bits, sizeBytes: Number(size), modifiedMs: Number(seconds) * 1000 });
  }
  return manifest;
}

/** Parses the output of `sumsCommand`. A file without a line counts as changed. */
export function parseSums(stdout: string): RemoteSums {
  const sums = new Map<string, string>();
  let tree = "";
  for (const line of stdout.split("\n")) {
    if (line.startsWith("# ")) tree = line.slice(2);
    const [, escape, sum, path] = /^(\\?)([0-9a-f]{64}) [ *]\.\/(.*)$/.exec(line) ?? [];
    if (sum !== undefined && path !== undefined)
      sums.set(`${tree}/${escape === "" ? path : unescaped(path)}`, sum);
  }
  return sums;
}

interface Comparison {
  readonly manifest: RemoteManifest;
  /**
   * Compares the contents of all files. Otherwise a file with the same size and time as the node's
   * counts as unchanged.
   */
  readonly checksum: boolean;
  /** Sums of files here. */
  readonly sumOf: FileSums;
  /** Asks the node for the sums of these files. Called at most once, and not at all if sizes and times suffice. */
  readonly askSums: (files: readonly SyncFile[]) => Promise<RemoteSums>;
}

/** Returns the same plan with the files that the node already has moved from `files` to `unchanged`. */
export async function changedFiles(
  plan: SyncPlan,
  { manifest, checksum, sumOf, askSums }: Comparison,
  signal: AbortSignal,
): Promise<SyncPlan> {
  const isSameSize = (file: SyncFile): boolean => {
    const present = manifest.get(keyOf(file));
    return present?.mode === file.mode && present.sizeBytes === file.sizeBytes;
  };
  const isSameTime = (file: SyncFile): boolean => isSameMoment(manifest.get(keyOf(file)), file);
  const doubtful = plan.files.filter((file) => isSameSize(file) && (checksum || !isSameTime(file)));
  const sums = doubtful.length === 0 ? new Map<string, string>() : await askSums(doubtful);
  const isSameSum = async (file: SyncFile): Promise<boolean> =>
    sums.get(keyOf(file)) === (await sumOf(file, signal));
  const isEqual = await mapConcurrently(doubtful, filesAtOnce, isSameSum, signal);
  const changed = new Set(doubtful.filter((_file, index) => isEqual[index] === false));
  const isUnchanged = (file: SyncFile): boolean => isSameSize(file) && !changed.has(file);
  return {
    ...plan,
    files: plan.files.filter((file) => !isUnchanged(file)),
    unchanged: [...plan.unchanged, ...plan.files.filter(isUnchanged)],
  };
}

/** The keys of the files that earlier syncs have sent to a master, for each list. */
type SentFiles = Readonly<Record<SyncPlan["list"], ReadonlySet<string>>>;

/**
 * Parses the records of `stateCommand` about sent files. Skips all others, which include names that
 * nothing can be sent to.
 */
function parseSent(records: string): SentFiles {
  const sent = { own: new Set<string>(), beside: new Set<string>() };
  for (const record of records.split("\0")) {
    const [, list, key] = /^sent (own|beside) ((?:tests|library)\/.+)$/s.exec(record) ?? [];
    if (key !== undefined) sent[list === "own" ? "own" : "beside"].add(key);
  }
  return sent;
}

/**
 * Returns the same plan with the files that it removes because an earlier sync has sent them, and
 * those that it keeps for the other list.
 */
export function withSent(
  plan: SyncPlan,
  { manifest, sent }: Pick<CheckoutState, "manifest" | "sent">,
): SyncPlan {
  const planned = new Set([...plan.files, ...plan.unchanged].map(keyOf));
  const other = plan.list === "own" ? sent.beside : sent.own;
  const gone = [...manifest.keys()].filter((key) => !planned.has(key));
  const isRemoved = (key: string): boolean =>
    sent[plan.list].has(key) || (isInPlace(plan.layout) && isCovered(plan, key));
  return {
    ...plan,
    removedFiles: gone.filter((key) => isRemoved(key) && !other.has(key)),
    keptFiles:
      plan.list === "own" ? gone.filter((key) => other.has(key) && isCovered(plan, key)) : [],
  };
}

/** Whether the plan would change nothing on the node, not even its list of sent files. */
export function isSettled(
  plan: SyncPlan,
  { manifest, sent }: Pick<CheckoutState, "manifest" | "sent">,
): boolean {
  if (plan.files.length > 0 || plan.removedFiles.length > 0) return false;
  const unchanged = new Set(plan.unchanged.map(keyOf));
  const listed = sent[plan.list];
  if (listed.size !== unchanged.size || [...listed].some((key) => !unchanged.has(key)))
    return false;
  const staying = new Set([...unchanged, ...plan.keptFiles]);
  return ![...manifest.keys()].some((key) => !staying.has(key) && isCovered(plan, key));
}

const isCovered = (plan: SyncPlan, key: string): boolean =>
  pathsBelow("tests", [key]).some((path) => isRemovedFirst(plan, path));

const filesAtOnce = 8;

/** Whether two times are equal up to the precision of an archive: a microsecond, rounded on both sides. */
const isSameMoment = (one: { readonly modifiedMs: number } | undefined, other: SyncFile): boolean =>
  one !== undefined && Math.abs(one.modifiedMs - other.modifiedMs) < 0.002;

/** sha256sum puts a backslash before a line whose file name it had to escape. */
const unescaped = (path: string): string =>
  path.replace(
    /\\([nr\\])/g,
    (_match, letter: string) => ({ n: "\n", r: "\r", "\\": "\\" })[letter] ?? letter,
  );

/** The facts about a master's installation that a sync needs. */
export interface CheckoutState {
  readonly layout: Layout;
  readonly variant: Variant;
  /** The name of a platform that is a folder; undefined for others. */
  readonly platform: string | undefined;
  readonly manifest: RemoteManifest;
  readonly sent: SentFiles;
}

/**
 * Parses the output of `stateCommand`. Returns a string if something is missing on the node. If the
 * version file doesn't name the variant, as in older releases, uses the cluster's variant.
 */
export function parseState(
  stdout: string,
  layouts: readonly Layout[],
  clusterVariant: Variant,
): CheckoutState | string {
  const [, name, versionFile = "", records = ""] =
    /^# layout (\S+)\n# version\n(.*?)\n# tests\n(.*)/s.exec(stdout) ?? [];
  const layout = layouts.find((each) => each.name === name);
  if (layout === undefined) return "the installation has not begun";
  const body = parseJson(versionFile);
  if (!isMapping(body)) return `${layout.versionFile} is incomplete`;
  const manifest = parseManifest(records);
  return {
    layout,
    variant: layout.installedVariant(body) ?? clusterVariant,
    platform: typeof body["name"] === "string" ? body["name"] : undefined,
    manifest,
    sent: parseSent(records),
  };
}
