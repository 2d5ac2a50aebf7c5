import { access, stat } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import type { ClusterName } from "../../../model/cluster-record.ts";
import { sha256OfFile } from "../../../system/files/file-hash.ts";
import { isMapping } from "../../../system/is-mapping.ts";
import { mapConcurrently } from "../../../system/map-concurrently.ts";
import type { NodeFacts } from "../cluster-facts.ts";
import { type Qemu, qemuFailure } from "../qemu/qemu.ts";
import { readSnapshotFacts, savedFiles, type SnapshotFacts, type StoredSnapshot } from "./snapshot-files.ts";
import { parseJson } from "../../../system/parse-json.ts";

const atOnce = 4;

interface Checked {
  readonly cluster: ClusterName;
  readonly nodes: readonly NodeFacts[];
  readonly snapshot: StoredSnapshot;
}

/**
 * Reads a snapshot and checks everything that a restore relies on. Throws `snapshot-unusable` if a file is missing or differs from what was saved,
 * and if this QEMU can't read memory that another version wrote.
 */
export async function checkSnapshot(
  qemu: Qemu,
  { cluster, nodes, snapshot }: Checked,
  signal: AbortSignal,
): Promise<SnapshotFacts> {
  const unusable = (why: string, hint: string): ClusterError =>
    new ClusterError("snapshot-unusable", `The snapshot "${snapshot.name}" of cluster "${cluster.id}" ${why}.`, {
      hint,
      facts: { cluster: cluster.id, snapshot: snapshot.name },
    });
  const deletion = "Nothing was stopped. Delete the snapshot, and make another one.";
  const facts = await readSnapshotFacts(snapshot.folder);
  if (facts === undefined) throw unusable("is damaged: its snapshot.json cannot be read", deletion);
  const [version, problems] = await Promise.all([
    exactVersion(qemu, signal),
    mapConcurrently(
      [...new Set([...Object.keys(facts.files), ...requiredFiles(nodes)])],
      atOnce,
      async (path) => fileProblem(snapshot.folder, path, facts, signal),
      signal,
    ),
  ]);
  if (release(version) !== release(facts.qemuVersion)) {
    const text = `was made by QEMU ${facts.qemuVersion}, and this machine has ${version}`;
    throw unusable(text, "Nothing was stopped. Use the QEMU that made it, or make another snapshot.");
  }
  const problem = problems.find((each) => each !== undefined);
  if (problem !== undefined) throw unusable(`is damaged: ${problem}`, deletion);
  const missing = await missingImage(qemu, { nodes, snapshot }, signal);
  if (missing !== undefined) throw unusable(`needs the image ${missing}, which is not there`, deletion);
  return facts;
}

/** Returns QEMU's version with all its numbers, such as `7.2.22`. */
async function exactVersion(qemu: Qemu, signal: AbortSignal): Promise<string> {
  const end = await qemu.system(["--version"], signal);
  const found = /version (\d+\.\d+\.\d+)/.exec(end.stdout)?.[1];
  if (found === undefined) throw qemuFailure(`${qemu.systemName} --version`, end);
  return found;
}

/** The form of saved memory changes with the first two numbers; the third counts corrections. */
const release = (version: string): string => version.split(".").slice(0, 2).join(".");

const requiredFiles = (nodes: readonly NodeFacts[]): readonly string[] =>
  nodes.flatMap((node) => [savedFiles(node).disk, savedFiles(node).memory]);

async function fileProblem(
  folder: string,
  path: string,
  { files }: SnapshotFacts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const known = files[path];
  const size = await stat(join(folder, path)).then(
    (found) => found.size,
    () => undefined,
  );
  if (known === undefined || size === undefined) return `${path} is missing`;
  const isSame = size === known.bytes && (await sha256OfFile(join(folder, path), signal)) === known.sha256;
  return isSame ? undefined : `${path} has changed`;
}

/** Returns the image below the disks, if it is gone. */
async function missingImage(
  qemu: Qemu,
  { nodes, snapshot }: Pick<Checked, "nodes" | "snapshot">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const [first] = nodes;
  if (first === undefined) return undefined;
  const end = await qemu.image(["info", "--output=json", join(snapshot.folder, savedFiles(first).disk)], signal);
  const told: unknown = end.status === 0 ? parseJson(end.stdout) : undefined;
  const image = isMapping(told) ? told["full-backing-filename"] : undefined;
  if (typeof image !== "string") return undefined;
  return access(image).then(
    () => undefined,
    () => image,
  );
}
