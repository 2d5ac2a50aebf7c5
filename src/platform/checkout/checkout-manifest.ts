import { runAtOnce } from "../../system/run-at-once.ts";
import type { FileSums } from "../../system/files/file-hash.ts";
import { isRemovedFirst } from "./checkout-plan.ts";
import type { SyncFile, SyncPlan } from "./checkout-plan.ts";

/** The entry at a path on a node: a file's SHA-256 sum and permission bits, or something that can't match a checkout's file, such as a link. */
interface RemoteEntry {
  readonly sum: string | undefined;
  readonly mode: number;
}

/** The keys are `<place>/<path>`. */
export type RemoteManifest = ReadonlyMap<string, RemoteEntry>;

const usualMode = 0o644;

/** Parses what `stateScript` printed about the places. It skips lines of any other form; their files count as missing and are sent. */
export function parseManifest(stdout: string): RemoteManifest {
  const manifest = new Map<string, RemoteEntry>();
  let place = "";
  for (const line of stdout.split("\n")) {
    if (line.startsWith("# ")) place = line.slice(2);
    const [, escape, sum, path] = /^(\\?)([0-9a-f]{64}) [ *]\.\/(.*)$/.exec(line) ?? [];
    if (path !== undefined) {
      manifest.set(`${place}/${escape === "" ? path : unescaped(path)}`, { sum, mode: usualMode });
    }
    const [, kind, mode, other] = /^(mode|link) ([0-7]+) (.*)$/.exec(line) ?? [];
    if (other !== undefined && mode !== undefined) {
      const known = kind === "mode" ? manifest.get(`${place}/${other}`) : undefined;
      manifest.set(`${place}/${other}`, { sum: known?.sum, mode: Number.parseInt(mode, 8) });
    }
  }
  return manifest;
}

/** Returns the same plan with the files that the node already has moved from `files` to `unchanged`. */
export async function changedFiles(
  plan: SyncPlan,
  manifest: RemoteManifest,
  sumOf: FileSums,
  signal: AbortSignal,
): Promise<SyncPlan> {
  const isUnchanged = async (file: SyncFile): Promise<boolean> => {
    const present = manifest.get(`${file.place}/${file.path}`);
    if (present?.sum === undefined || present.mode !== file.mode) return false;
    return present.sum === (await sumOf(file.source, signal));
  };
  const unchanged = await runAtOnce(plan.files, filesAtOnce, isUnchanged, signal);
  return {
    ...plan,
    files: plan.files.filter((_file, index) => unchanged[index] === false),
    unchanged: [...plan.unchanged, ...plan.files.filter((_file, index) => unchanged[index] === true)],
  };
}

/** Whether the node already matches the plan: there is nothing to send, and nothing to remove for good. */
export function isSettled(plan: SyncPlan, manifest: RemoteManifest): boolean {
  if (plan.files.length > 0) return false;
  const staying = new Set(plan.unchanged.map((file) => `${file.place}/${file.path}`));
  return ![...manifest.keys()].some(
    (key) => !staying.has(key) && key.startsWith("tests/") && isRemovedFirst(plan, key.slice("tests/".length)),
  );
}

const filesAtOnce = 8;

/** sha256sum puts a backslash before a line whose file name it had to escape. */
const unescaped = (path: string): string =>
  path.replace(/\\([nr\\])/g, (_match, letter: string) => ({ n: "\n", r: "\r", "\\": "\\" })[letter] ?? letter);
