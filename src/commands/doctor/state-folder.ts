import type { Stats } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Check, type Outcome, fail, localCheck, pass, warn } from "../../model/check.ts";
import { quotedPath } from "../../ssh/openssh-files.ts";
import { hasMasterConnection } from "../../ssh/session/master-connection.ts";
import { quote } from "../../ssh/shell-text.ts";
import { creationsProblem, isEndedCreation } from "../../store/creation-folder.ts";
import { statIfPresent } from "../../system/files/private-file.ts";
import { ownGroupId, ownUserId } from "../../system/own-user.ts";
import type { Environment } from "../../system/runtime.ts";

/** Checks that the folder of keys, known hosts and logs is writable and closed to other users. */
export const stateFolderCheck = (folder: string, environment: Environment): Check =>
  localCheck("state folder", async () => examine(folder, environment));

async function examine(folder: string, environment: Environment): Promise<Outcome> {
  // Throws if ssh couldn't use the keys in it.
  quotedPath(folder);
  const present = await statIfPresent(folder);
  const unwritable = await creationsProblem(folder);
  if (unwritable !== undefined) {
    return fail(
      `Cannot ${present === undefined ? "create" : "write to"} the state folder ${folder}: ${unwritable.text}.`,
      "Make sure that you own it, that you may write to it, and that its disk isn't full, or set XDG_STATE_HOME to another folder.",
    );
  }
  if (present === undefined)
    return (await exposureAbove(folder)) ?? pass(`${folder} can be created`);
  const problem =
    exposure(folder, present) ??
    (await exposureAbove(folder)) ??
    (await exposedKeys(folder)) ??
    (await leftConnections(folder, environment));
  return problem ?? pass(`${folder} is writable and private`);
}

/** Users who can write here can replace keys and known hosts. Users who can only read see names. */
function exposure(folder: string, { mode, uid }: Stats): Outcome | undefined {
  if ((mode & 0o022) !== 0) {
    return fail(
      `Other users can write to the state folder ${folder}.`,
      `Keep them out: chmod 700 ${quote([folder])}`,
    );
  }
  if (uid !== ownUserId()) {
    return warn(
      `The state folder ${folder} belongs to another user (${uid}).`,
      "Take ownership of it with chown, or set XDG_STATE_HOME to your own folder: that user has full control over this one.",
    );
  }
  if ((mode & 0o055) === 0) return undefined;
  return warn(
    `Other users can read the state folder ${folder}.`,
    `Keep them out: chmod 700 ${quote([folder])}`,
  );
}

/** The owner that folders seem to have whose real one has no number here, as in user namespaces. */
const unknownOwner = 65_534;

/**
 * Users who own a folder above, or can write to it, can put another folder in this one's place. The
 * sticky bit keeps all but the owner from it. The group of one's own that many systems give each
 * user has no other members.
 */
async function exposureAbove(folder: string): Promise<Outcome | undefined> {
  const gid = ownGroupId();
  const real = await realpath(folder).catch(() => folder);
  for (const above of new Set([...foldersAbove(folder), ...foldersAbove(real)])) {
    const information = await stat(above).catch(() => undefined);
    if (information === undefined) continue;
    if (![ownUserId(), 0, unknownOwner].includes(information.uid))
      return warn(
        `The user ${information.uid} can replace the state folder ${folder}, and owns ${above}.`,
        "Set XDG_STATE_HOME to a folder below your own.",
      );
    if ((information.mode & 0o1000) !== 0) continue;
    const isOpen = (information.mode & (information.gid === gid ? 0o002 : 0o022)) !== 0;
    if (isOpen)
      return warn(
        `Other users can replace the state folder ${folder}: they can write to ${above}.`,
        `Keep them out: chmod go-w ${quote([above])}; or set XDG_STATE_HOME to another folder.`,
      );
  }
  return undefined;
}

const foldersAbove = (path: string): readonly string[] =>
  dirname(path) === path ? [] : [dirname(path), ...foldersAbove(dirname(path))];

/** Keys are created for this user alone, and ssh refuses a key that others can read. */
async function exposedKeys(folder: string): Promise<Outcome | undefined> {
  const keys = (await creationFolders(folder)).map((creation) => join(creation, "id_ed25519"));
  const modes = await Promise.all(keys.map(async (key) => (await statIfPresent(key))?.mode ?? 0));
  const exposed = keys.filter((_, index) => ((modes[index] ?? 0) & 0o077) !== 0);
  if (exposed.length === 0) return undefined;
  return fail(
    `Other users can read ${exposed.length === 1 ? "an SSH key" : "SSH keys"}: ${exposed.join(", ")}.`,
    `Keep them out (ssh refuses such a key): chmod 600 ${quote(exposed)}`,
  );
}

/** `run` leaves a connection open for some minutes. The removal of a cluster should have closed it. */
async function leftConnections(
  folder: string,
  environment: Environment,
): Promise<Outcome | undefined> {
  const creations = await creationFolders(folder);
  const isLeft = async (creation: string): Promise<boolean> =>
    (await isEndedCreation(creation)) && (await hasMasterConnection(creation, environment));
  const left = await Promise.all(
    creations.map(async (creation) => ((await isLeft(creation)) ? [creation] : [])),
  );
  if (left.flat().length === 0) return undefined;
  const sockets = left.flat().map((creation) => join(creation, "master-*"));
  return warn(
    `An ssh still holds a connection to a cluster that is gone: ${sockets.join(", ")}.`,
    "It ends by itself ten minutes after its last use. To end it now, pass its socket to ssh: ssh -O exit -S SOCKET master",
  );
}

/** Returns the folders of all creations. The layout is backend, scope (if the backend has several), creation. */
async function creationFolders(folder: string): Promise<readonly string[]> {
  const backends = await foldersIn(folder);
  const scopes = (await Promise.all(backends.map(foldersIn))).flat();
  const creations = (await Promise.all(scopes.map(foldersIn))).flat();
  return [...scopes, ...creations];
}

async function foldersIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name));
}
