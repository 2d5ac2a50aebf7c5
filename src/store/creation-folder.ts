import { readdir, realpath, rm, stat, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ClusterError } from "../errors.ts";
import { parseClusterId, parseCreationId } from "../model/parse-values.ts";
import * as read from "../model/reader.ts";
import { writeProblem } from "../system/files/draft.ts";
import {
  errorCode,
  isAccessible,
  makePrivateFolder,
  writePrivateFile,
} from "../system/files/private-file.ts";
import { readOwnJson } from "../system/files/read-text.ts";
import {
  type ProcessIdentity,
  identifyThisProcess,
  isProcessAlive,
  parseProcessIdentity,
} from "../system/processes/process-identity.ts";

export interface CreationFiles {
  readonly privateKey: string;
  readonly knownHosts: string;
  readonly sshConfig: string;
  readonly log: string;
  readonly creation: string;
  readonly lastRecord: string;
  /** The sleep of this computer after which the nodes' clocks were last set. */
  readonly suspensions: string;
}

export function creationFiles(directory: string): CreationFiles {
  return {
    privateKey: join(directory, "id_ed25519"),
    knownHosts: join(directory, "known_hosts"),
    sshConfig: join(directory, "ssh_config"),
    log: join(directory, "log"),
    creation: join(directory, "creation.json"),
    lastRecord: join(directory, "last_record.json"),
    suspensions: join(directory, "suspensions"),
  };
}

interface CreationName {
  readonly clusterId: string;
  readonly creationId: string;
}

/**
 * `root` is the folder of one backend and scope, such as `…/cloud/us-west-2`. Both ids must have
 * been parsed; an unparsed id is a bug.
 */
export function creationDirectory(root: string, clusterId: string, creationId: string): string {
  if (parseClusterId(clusterId) === undefined || parseCreationId(creationId) === undefined) {
    throw new TypeError(
      `A creation cannot have the ids ${JSON.stringify([clusterId, creationId])}`,
    );
  }
  return join(root, `${clusterId}-${creationId}`);
}

/** Reads the ids from the name of a creation's folder; undefined if it is another folder. */
export function creationOfDirectory(directory: string): CreationName | undefined {
  const [, before, after] = /^(.+)-([^-]+)$/s.exec(basename(directory)) ?? [];
  const [clusterId, creationId] = [parseClusterId(before), parseCreationId(after)];
  return clusterId === undefined || creationId === undefined
    ? undefined
    : { clusterId, creationId };
}

/**
 * Checks that a creation's folder, if it exists, is not a link. Throws `machine-not-set-up`
 * if a link leads elsewhere, because every change would affect that folder.
 */
export async function assertOwnFolder(directory: string): Promise<void> {
  if (await isOwnFolder(directory)) return;
  throw new ClusterError(
    "machine-not-set-up",
    `The cluster's folder ${directory} is a symbolic link.`,
    {
      hint: "Replace the link with the folder itself, or remove it. To keep all state elsewhere, set XDG_STATE_HOME.",
      facts: { directory },
    },
  );
}

/**
 * Whether a creation's folder is no link, or doesn't exist. Folders above it may be links:
 * `$XDG_STATE_HOME` is the user's choice.
 */
export async function isOwnFolder(directory: string): Promise<boolean> {
  try {
    return (
      (await realpath(directory)) === join(await realpath(dirname(directory)), basename(directory))
    );
  } catch (error) {
    // A dangling link is refused too. It leads nowhere, but an entry with that name exists.
    if (errorCode(error) === "ENOENT")
      return !(await folderNames(dirname(directory))).includes(basename(directory));
    throw error;
  }
}

/**
 * Why creations can't have their folders in this one, such as a full disk or a file system without access rights;
 * undefined if they can.
 */
export const creationsProblem = async (folder: string) => writeProblem(folder, fileSystemLack);

/** ssh refuses keys that others can read, and locks are symbolic links. */
export async function fileSystemLack(trial: string): Promise<string | undefined> {
  if (((await stat(trial)).mode & 0o077) !== 0)
    return "its file system has no access rights, so that ssh would refuse the key";
  try {
    await symlink("nothing", join(trial, "link"));
  } catch (error) {
    if (!["EPERM", "ENOSYS", "ENOTSUP"].includes(errorCode(error) ?? "")) throw error;
    return "its file system has no symbolic links";
  }
  return undefined;
}

/**
 * Creates a creation's folder for this user alone, or restricts an existing one to this user.
 * Throws the errors of `assertOwnFolder`.
 */
export async function makeCreationFolder(directory: string): Promise<void> {
  await assertOwnFolder(directory);
  await makePrivateFolder(directory);
}

/**
 * `unfinished`: in progress, or its program died, so its machines must not be used. `finished`: the
 * cluster exists (or is kept on purpose). `in-use`: it exists until its program ends. `removed`:
 * nothing of it is left. `abandoned`: its program could not remove everything, and no longer tries.
 */
const creationStates = ["unfinished", "finished", "in-use", "removed", "abandoned"] as const;
type CreationState = (typeof creationStates)[number];

/**
 * The contents of `creation.json`. While the owner is alive, it holds the lock on a creation that
 * is unfinished or in use.
 */
interface Creation extends CreationName {
  readonly schemaVersion: 1;
  readonly state: CreationState;
  readonly owner: ProcessIdentity | undefined;
}

/** A creation that its program left unfinished or abandoned, and its location. */
interface AbandonedCreation {
  readonly directory: string;
  readonly creation: Creation;
}

/** Creates the folder (0700) and locks it for this process. Both are on disk before it resolves. */
export async function beginCreation(
  directory: string,
  clusterId: string,
  creationId: string,
): Promise<void> {
  await makeCreationFolder(directory);
  await writeCreation(directory, { clusterId, creationId, state: "unfinished" });
}

/**
 * Records how the creation ended, or that it is complete. Without this, a later create on this
 * machine treats its machines as remains.
 */
export async function endCreation(
  directory: string,
  state: Exclude<CreationState, "unfinished">,
): Promise<void> {
  const creation = await readCreation(directory);
  if (creation !== undefined) await writeCreation(directory, { ...creation, state });
}

/**
 * Records that nothing of the creation is left, and removes its key, which opens nothing any more.
 * On a full disk, that makes room for the record.
 */
export async function endRemovedCreation(directory: string): Promise<void> {
  if (await isOwnFolder(directory)) await rm(creationFiles(directory).privateKey, { force: true });
  await endCreation(directory, "removed");
}

/**
 * Returns the creations with this cluster id, or with ids of this form, that no process works on
 * and that may have left something behind.
 */
export async function abandonedCreations(
  root: string,
  clusterIds: string | RegExp,
): Promise<readonly AbandonedCreation[]> {
  const names = await folderNames(root);
  const found = await Promise.all(names.map((name) => abandonedCreation(join(root, name))));
  const isWanted = ({ creation: { clusterId } }: AbandonedCreation): boolean =>
    typeof clusterIds === "string" ? clusterId === clusterIds : clusterIds.test(clusterId);
  return found.filter((abandoned) => abandoned !== undefined).filter(isWanted);
}

/** The creations whose keys this computer has, and that it has neither removed nor given up on. */
export async function recordedCreations(root: string): Promise<readonly CreationName[]> {
  const found = await Promise.all(
    (await folderNames(root)).map(async (name) => {
      const creation = creationOfDirectory(name);
      return creation !== undefined && (await isCreationHere(join(root, name))) ? [creation] : [];
    }),
  );
  return found.flat();
}

/** The folders of this id's creations that may still be clusters, including imported ones. */
export async function presentCreations(
  root: string,
  clusterId: string,
): Promise<readonly string[]> {
  const names = (await folderNames(root)).filter(
    (name) => creationOfDirectory(name)?.clusterId === clusterId,
  );
  const found = await Promise.all(
    names.map(async (name) => {
      const directory = join(root, name);
      const state = (await readCreation(directory))?.state ?? "finished";
      return isComplete(state) && (await isOwnFolder(directory)) ? [directory] : [];
    }),
  );
  return found.flat();
}

/**
 * Whether this machine has created or imported the cluster of this folder, and has neither removed
 * it nor given up on it.
 */
export async function isCreationHere(directory: string): Promise<boolean> {
  if (!(await isAccessible(creationFiles(directory).privateKey)) || !(await isOwnFolder(directory)))
    return false;
  return !(await isEndedCreation(directory));
}

/** Whether no process works on the creation in this folder, and it may have left something behind. */
export async function isAbandonedCreation(directory: string): Promise<boolean> {
  return (await abandonedCreation(directory)) !== undefined;
}

/** Whether the program that created this cluster ended before it had finished, so that its nodes may be unusable. */
export async function isCutShort(directory: string): Promise<boolean> {
  const state = (await abandonedCreation(directory))?.creation.state;
  return state !== undefined && state !== "in-use";
}

/** Whether the creation in this folder is unfinished, and its process may be working on it. */
export async function isCreationUnderWay(directory: string): Promise<boolean> {
  return (
    (await readCreation(directory))?.state === "unfinished" &&
    !(await isAbandonedCreation(directory))
  );
}

/** Whether this machine has completed the creation in this folder, or keeps the machines of a failed one. */
export async function isFinishedCreation(directory: string): Promise<boolean> {
  return isComplete((await readCreation(directory))?.state);
}

const isComplete = (state: CreationState | undefined): boolean =>
  state === "finished" || state === "in-use";

/** Whether this program has removed the creation in this folder, or given up on it. */
export async function isEndedCreation(directory: string): Promise<boolean> {
  const state = (await readCreation(directory))?.state;
  return state === "removed" || state === "abandoned";
}

async function abandonedCreation(directory: string): Promise<AbandonedCreation | undefined> {
  const creation = await readCreation(directory);
  if (creation?.state === "abandoned") return { directory, creation };
  if (creation?.state !== "unfinished" && creation?.state !== "in-use") return undefined;
  // An owner that could not be identified may still be alive.
  if (creation.owner === undefined || (await isProcessAlive(creation.owner))) return undefined;
  return { directory, creation };
}

async function writeCreation(
  directory: string,
  facts: Pick<Creation, "clusterId" | "creationId" | "state">,
): Promise<void> {
  const creation: Creation = { schemaVersion: 1, ...facts, owner: await identifyThisProcess() };
  await writePrivateFile(
    creationFiles(directory).creation,
    `${JSON.stringify(creation, undefined, 2)}\n`,
  );
}

/** Returns undefined if there is no creation, if a newer program wrote it, or if it doesn't belong to this folder. */
async function readCreation(directory: string): Promise<Creation | undefined> {
  if (!(await isOwnFolder(directory).catch(() => false))) return undefined;
  return readOwnJson(creationFiles(directory).creation, (found) => parseCreation(found, directory));
}

/**
 * Parses the JSON of `creation.json`; undefined if it has another shape, or names another creation
 * than its folder does.
 */
export function parseCreation(found: unknown, directory: string): Creation | undefined {
  const name = creationOfDirectory(directory);
  if (name === undefined) return undefined;
  const reader = read.object({
    schemaVersion: read.oneOf(1),
    clusterId: read.oneOf(name.clusterId),
    creationId: read.oneOf(name.creationId),
    state: read.oneOf(...creationStates),
    // An owner of another shape counts as not identified.
    owner: read.lenient(parseProcessIdentity),
  });
  return reader(found);
}

const folderNames = async (path: string): Promise<readonly string[]> =>
  readdir(path).catch(() => []);
