import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Backend } from "../../backend/contract.ts";
import { ClusterError } from "../../errors.ts";
import { runCommand } from "../../references.ts";
import { creationFiles, creationOfDirectory, isOwnFolder } from "../../store/creation-folder.ts";
import { eventsFile } from "../../store/events.ts";
import { stateFolder } from "../../store/state-folder.ts";
import type { Environment } from "../../system/runtime.ts";

/**
 * Returns the folder of the last cluster with this id, which may be gone. Throws
 * `cluster-not-found` if there is none.
 */
export async function findLastFolder(
  backend: Pick<Backend<never>, "name" | "scope">,
  clusterId: string,
  environment: Environment,
): Promise<string> {
  const root = join(stateFolder(environment), backend.name, backend.scope?.name ?? "");
  const names = (await readdir(root).catch(() => [])).filter(
    (name) => creationOfDirectory(name)?.clusterId === clusterId,
  );
  const found = await Promise.all(
    names.map(async (name) => {
      const directory = join(root, name);
      return { directory, ms: (await isOwnFolder(directory)) ? await changedMs(directory) : 0 };
    }),
  );
  const [last] = found.toSorted((a, b) => b.ms - a.ms);
  if (last !== undefined && last.ms > 0) return last.directory;
  throw new ClusterError(
    "cluster-not-found",
    `There is no cluster "${clusterId}", and no folder of one on this computer.`,
    { hint: `${runCommand("list")} to see all clusters.`, facts: { cluster: clusterId } },
  );
}

async function changedMs(directory: string): Promise<number> {
  const files = [eventsFile(directory), creationFiles(directory).log];
  const times = await Promise.all(
    files.map(async (file) => (await stat(file).catch(() => undefined))?.mtimeMs ?? 0),
  );
  return Math.max(...times);
}
