import { runAtOnce } from "../system/concurrency.ts";
import { sha256OfFile } from "../system/file-hash.ts";
import type { SyncFile, SyncPlan } from "./checkout-plan.ts";

/** SHA-256 sums of what a node has, by `<place>/<path>`. */
export type RemoteManifest = ReadonlyMap<string, string>;

/** Reads what `remoteManifestScript` printed. Lines of another form are passed over: their files count as absent and are sent. */
export function parseManifest(stdout: string): RemoteManifest {
  const manifest = new Map<string, string>();
  let place = "";
  for (const line of stdout.split("\n")) {
    if (line.startsWith("# ")) place = line.slice(2);
    const [, escape, sum, path] = /^(\\?)([0-9a-f]{64}) [ *]\.\/(.*)$/.exec(line) ?? [];
    if (sum !== undefined && path !== undefined)
      manifest.set(`${place}/${escape === "" ? path : unescaped(path)}`, sum);
  }
  return manifest;
}

/** The same plan, with the files that the node has already moved from `files` to `unchanged`. */
export async function changedFiles(plan: SyncPlan, manifest: RemoteManifest, signal: AbortSignal): Promise<SyncPlan> {
  const isUnchanged = async (file: SyncFile): Promise<boolean> => {
    const sum = manifest.get(`${file.place}/${file.path}`);
    return sum !== undefined && sum === (await sha256OfFile(file.source, signal));
  };
  const unchanged = await runAtOnce(plan.files, filesAtOnce, isUnchanged, signal);
  return {
    ...plan,
    files: plan.files.filter((_file, index) => unchanged[index] === false),
    unchanged: [...plan.unchanged, ...plan.files.filter((_file, index) => unchanged[index] === true)],
  };
}

const filesAtOnce = 8;

/** sha256sum marks a line whose name it had to escape with a backslash at its beginning. */
const unescaped = (path: string): string =>
  path.replace(/\\([nr\\])/g, (_match, letter: string) => ({ n: "\n", r: "\r", "\\": "\\" })[letter] ?? letter);
