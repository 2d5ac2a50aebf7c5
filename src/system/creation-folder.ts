import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { makePrivateFolder, writePrivateFile } from "./private-file.ts";
import { identifyThisProcess, isProcessAlive, type ProcessIdentity } from "./process-identity.ts";

/** What a creation keeps on this machine, by absolute path. */
export interface CreationFiles {
  readonly privateKey: string;
  readonly knownHosts: string;
  readonly sshConfig: string;
  readonly log: string;
  readonly creation: string;
}

export function creationFiles(directory: string): CreationFiles {
  return {
    privateKey: join(directory, "id_ed25519"),
    knownHosts: join(directory, "known_hosts"),
    sshConfig: join(directory, "ssh_config"),
    log: join(directory, "log"),
    creation: join(directory, "creation.json"),
  };
}

/** `root` is the folder of one backend and place, such as `…/cloud/us-west-2`. */
export function creationDirectory(root: string, clusterId: string, creationId: string): string {
  return join(root, `${clusterId}-${creationId}`);
}

/** What a creation's folder says by its name alone; undefined where it isn't one's. */
export function creationOfDirectory(
  directory: string,
): { readonly clusterId: string; readonly creationId: string } | undefined {
  const [, clusterId, creationId] = /^(.+)-([0-9a-f]{16})$/.exec(basename(directory)) ?? [];
  return clusterId === undefined || creationId === undefined ? undefined : { clusterId, creationId };
}

/**
 * `unfinished`: under way, or its program died: nobody may rely on its machines. `finished`: the cluster stands (or is kept on purpose).
 * `removed`: nothing of it is left. `abandoned`: its program could not remove everything, and no longer tries.
 */
export type CreationState = "unfinished" | "finished" | "removed" | "abandoned";

/** The text of `creation.json`. The owner, while it lives, is the lock on an unfinished creation. */
interface Creation {
  readonly schemaVersion: 1;
  readonly clusterId: string;
  readonly creationId: string;
  readonly state: CreationState;
  readonly owner: ProcessIdentity | undefined;
}

/** A creation that its program left unfinished or gave up, and where it lies. */
export interface AbandonedCreation {
  readonly directory: string;
  readonly creation: Creation;
}

/** Makes the folder (0700) and locks it for this process, on the disk before it resolves. */
export async function beginCreation(directory: string, clusterId: string, creationId: string): Promise<void> {
  await makePrivateFolder(directory);
  await writeCreation(directory, { clusterId, creationId, state: "unfinished" });
}

/** Says how the creation ended. Without this, a later create on this machine takes its machines for remains. */
export async function endCreation(directory: string, state: Exclude<CreationState, "unfinished">): Promise<void> {
  const creation = await readCreation(directory);
  if (creation !== undefined) await writeCreation(directory, { ...creation, state });
}

/** The creations of this cluster id that nobody works on, and of which something may be left. */
export async function abandonedCreations(root: string, clusterId: string): Promise<readonly AbandonedCreation[]> {
  const names = await folderNames(root);
  const found = await Promise.all(names.map((name) => abandonedCreation(join(root, name))));
  return found
    .filter((abandoned) => abandoned !== undefined)
    .filter(({ creation }) => creation.clusterId === clusterId);
}

/** Whether nobody works on the creation in this folder, and something of it may be left. */
export async function isAbandonedCreation(directory: string): Promise<boolean> {
  return (await abandonedCreation(directory)) !== undefined;
}

/** Whether the creation in this folder is unfinished, and its process may be at work. */
export async function isCreationUnderWay(directory: string): Promise<boolean> {
  return (await readCreation(directory))?.state === "unfinished" && !(await isAbandonedCreation(directory));
}

async function abandonedCreation(directory: string): Promise<AbandonedCreation | undefined> {
  const creation = await readCreation(directory);
  if (creation?.state === "abandoned") return { directory, creation };
  if (creation?.state !== "unfinished") return undefined;
  // Where the owner could not be told, nobody can say that it is gone.
  if (creation.owner === undefined || (await isProcessAlive(creation.owner))) return undefined;
  return { directory, creation };
}

async function writeCreation(
  directory: string,
  facts: Pick<Creation, "clusterId" | "creationId" | "state">,
): Promise<void> {
  const owner = await identifyThisProcess();
  const creation: Creation = {
    schemaVersion: 1,
    clusterId: facts.clusterId,
    creationId: facts.creationId,
    state: facts.state,
    owner,
  };
  await writePrivateFile(creationFiles(directory).creation, `${JSON.stringify(creation, undefined, 2)}\n`);
}

/** `undefined` where there is none, or one that a newer program wrote. */
async function readCreation(directory: string): Promise<Creation | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(creationFiles(directory).creation, "utf8"));
    return isCreation(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isCreation(value: unknown): value is Creation {
  return typeof value === "object" && value !== null && "schemaVersion" in value && value.schemaVersion === 1;
}

async function folderNames(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch {
    return [];
  }
}
