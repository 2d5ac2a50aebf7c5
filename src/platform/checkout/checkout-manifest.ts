import { runAtOnce } from "../../system/run-at-once.ts";
import type { FileSums } from "../../system/files/file-hash.ts";
import { isRemovedFirst } from "./checkout-plan.ts";
import type { SyncFile, SyncPlan } from "./checkout-plan.ts";

/** What a node has at a path: a file's SHA-256 sum and permission bits, or something that no file of a checkout equals, such as a link. */
interface RemoteEntry {
  readonly sum: string | undefined;
  readonly mode: number;
}

/** By `<place>/<path>`. */
export type RemoteManifest = ReadonlyMap<string, RemoteEntry>;

const usualMode = 0o644;

/** Reads what `stateScript` printed of the places. Lines of another form are passed over: their files count as absent and are sent. */
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

/** The same plan, with the files that the node has already moved from `files` to `unchanged`. */
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

/** Whether the node is already as the plan wants it: nothing is to be sent, and nothing there would be removed for good. */
export function isSettled(plan: SyncPlan, manifest: RemoteManifest): boolean {
  if (plan.files.length > 0) return false;
  const staying = new Set(plan.unchanged.map((file) => `${file.place}/${file.path}`));
  return ![...manifest.keys()].some(
    (key) => !staying.has(key) && key.startsWith("tests/") && isRemovedFirst(plan, key.slice("tests/".length)),
  );
}

const filesAtOnce = 8;

/** sha256sum marks a line whose name it had to escape with a backslash at its beginning. */
const unescaped = (path: string): string =>
  path.replace(/\\([nr\\])/g, (_match, letter: string) => ({ n: "\n", r: "\r", "\\": "\\" })[letter] ?? letter);
