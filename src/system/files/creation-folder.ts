import { readdir, readFile, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ClusterError } from "../../errors.ts";
import { parseClusterId, parseCreationId } from "../../model/parse-values.ts";
import { errorCode } from "../error-code.ts";
import { isMapping } from "../is-mapping.ts";
import { makePrivateFolder, writePrivateFile } from "./private-file.ts";
import {
  identifyThisProcess,
  isProcessAlive,
  type ProcessIdentity,
  parseProcessIdentity,
} from "../processes/process-identity.ts";

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

/** One creation of a cluster. */
interface CreationName {
  readonly clusterId: string;
  readonly creationId: string;
}

/** `root` is the folder of one backend and place, such as `…/cloud/us-west-2`. Both ids must have been parsed: others are a bug. */
export function creationDirectory(root: string, clusterId: string, creationId: string): string {
  if (parseClusterId(clusterId) === undefined || parseCreationId(creationId) === undefined) {
    throw new TypeError(`No creation can have the ids ${JSON.stringify([clusterId, creationId])}`);
  }
  return join(root, `${clusterId}-${creationId}`);
}

/** What a creation's folder says by its name alone; undefined where it isn't one's. */
export function creationOfDirectory(directory: string): CreationName | undefined {
  const [, before, after] = /^(.+)-([^-]+)$/s.exec(basename(directory)) ?? [];
  const [clusterId, creationId] = [parseClusterId(before), parseCreationId(after)];
  return clusterId === undefined || creationId === undefined ? undefined : { clusterId, creationId };
}

/**
 * Proves that a creation's folder, if it exists, really lies where its path says, in the folder of its backend and place. Throws
 * `machine-not-set-up` where a link leads elsewhere: whatever is done to the folder would be done there.
 */
export async function assertOwnFolder(directory: string): Promise<void> {
  if (await isOwnFolder(directory)) return;
  throw new ClusterError("machine-not-set-up", `The cluster's folder ${directory} is a link to another place.`, {
    hint: "Put the folder itself there, or remove the link. To keep all state elsewhere, set XDG_STATE_HOME.",
    facts: { directory },
  });
}

/** Whether a creation's folder lies where its path says, or doesn't exist. Folders above it may be links: `$XDG_STATE_HOME` is the user's own choice. */
export async function isOwnFolder(directory: string): Promise<boolean> {
  try {
    return (await realpath(directory)) === join(await realpath(dirname(directory)), basename(directory));
  } catch (error) {
    // A link that leads nowhere is in the way as well, but then there is an entry by that name.
    if (errorCode(error) === "ENOENT") return !(await folderNames(dirname(directory))).includes(basename(directory));
    throw error;
  }
}

/** Makes a creation's folder, for this user alone, or takes over the one that is there. Throws as `assertOwnFolder` does. */
export async function makeCreationFolder(directory: string): Promise<void> {
  await assertOwnFolder(directory);
  await makePrivateFolder(directory);
}

/**
 * `unfinished`: under way, or its program died: nobody may rely on its machines. `finished`: the cluster stands (or is kept on purpose).
 * `removed`: nothing of it is left. `abandoned`: its program could not remove everything, and no longer tries.
 */
const creationStates = ["unfinished", "finished", "removed", "abandoned"] as const;
export type CreationState = (typeof creationStates)[number];

/** The text of `creation.json`. The owner, while it lives, is the lock on an unfinished creation. */
interface Creation extends CreationName {
  readonly schemaVersion: 1;
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
  await makeCreationFolder(directory);
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

/** `undefined` where there is none, one that a newer program wrote, or one that isn't this folder's. */
async function readCreation(directory: string): Promise<Creation | undefined> {
  try {
    if (!(await isOwnFolder(directory))) return undefined;
    return parseCreation(JSON.parse(await readFile(creationFiles(directory).creation, "utf8")), directory);
  } catch {
    return undefined;
  }
}

/** The text of `creation.json` as JSON has it; undefined where it has another shape, or names another creation than its folder does. */
export function parseCreation(found: unknown, directory: string): Creation | undefined {
  const name = creationOfDirectory(directory);
  if (!isMapping(found) || found["schemaVersion"] !== 1 || name === undefined) return undefined;
  if (found["clusterId"] !== name.clusterId || found["creationId"] !== name.creationId) return undefined;
  const state = creationStates.find((candidate) => candidate === found["state"]);
  // One that can't be told counts as none: then nobody can say that it is gone.
  const owner = parseProcessIdentity(found["owner"]);
  return state === undefined ? undefined : { schemaVersion: 1, ...name, state, owner };
}

async function folderNames(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch {
    return [];
  }
}
