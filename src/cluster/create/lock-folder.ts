import type { Backend } from "../../backend/contract.ts";
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError, messageOf, systemReason } from "../../errors.ts";
import { temporaryClusterIds } from "../../model/parse-values.ts";
import { quotedPath } from "../../ssh/openssh-files.ts";
import { closeMasterConnections } from "../../ssh/session/master-connection.ts";
import {
  abandonedCreations,
  beginCreation,
  creationDirectory,
  creationFiles,
  creationsProblem,
  makeCreationFolder,
} from "../../store/creation-folder.ts";
import { writePrivateFile } from "../../system/files/private-file.ts";
import { stateFolder } from "../../store/state-folder.ts";
import type { Environment, Work } from "../../system/runtime.ts";
import { recordCommandLine } from "../events/record-event.ts";
import type { CreateRequest } from "./create-request.ts";

/**
 * Locks the creation's folder on this machine, which holds the key that opens the nodes. The folder
 * belongs to this process until `endCreation`.
 */
export async function lockFolder(
  { environment, signal, ...runtime }: Work,
  backend: Pick<Backend<never>, "name" | "scope">,
  {
    clusterId,
    ownKey,
    commandLine,
  }: Pick<CreateRequest<never>, "clusterId" | "ownKey" | "commandLine">,
) {
  const [{ generateKeyPair }, { proveOpenSshReads, readKeyPair }] = await Promise.all([
    import("../../ssh/keys.ts"),
    import("../../ssh/own-key.ts"),
  ]);
  const keys =
    ownKey === undefined ? generateKeyPair(`cluster-e2e-${clusterId}`) : await readKeyPair(ownKey);
  const creationId = randomBytes(8).toString("hex");
  const root = rootOf(environment, backend);
  await rehearseLock(environment, backend);
  const directory = creationDirectory(root, clusterId, creationId);
  // Otherwise only `run` would find out that ssh can't use the key, on a cluster that exists already.
  quotedPath(creationFiles(directory).privateKey);
  try {
    await makeCreationFolder(directory);
    await writePrivateFile(creationFiles(directory).privateKey, keys.privateKey);
    await beginCreation(directory, clusterId, creationId);
    recordCommandLine(directory, commandLine, runtime);
  } catch (error) {
    throw folderRefused(root, systemReason(error), error);
  }
  try {
    const copy = { file: creationFiles(directory).privateKey, publicKey: keys.publicKey };
    if (ownKey !== undefined)
      await proveOpenSshReads({ path: ownKey, ...copy }, environment, signal);
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  return { root, creationId, directory, publicKey: keys.publicKey };
}

/** Throws the error with which `lockFolder` would end on this machine, and leaves nothing. */
export async function rehearseLock(
  environment: Environment,
  backend: Pick<Backend<never>, "name" | "scope">,
): Promise<void> {
  const root = rootOf(environment, backend);
  quotedPath(root);
  const problem = await creationsProblem(root);
  if (problem !== undefined) throw folderRefused(root, problem.reason, problem.cause);
}

/** The folder that holds all creations of this backend and scope. */
const rootOf = (
  environment: Environment,
  { name, scope }: Pick<Backend<never>, "name" | "scope">,
) => join(stateFolder(environment), name, scope?.name ?? "");

function folderRefused(root: string, reason: string, cause: unknown): ClusterError {
  return new ClusterError(
    "machine-not-set-up",
    `Cannot create the cluster's folder in ${root}: ${reason}.`,
    {
      hint: "The cluster's SSH key is kept there, so nothing was launched. Set XDG_STATE_HOME to another folder.",
      facts: { directory: root },
      cause,
    },
  );
}

/**
 * Removes the remains of earlier creations of this id on this machine, which were killed or could not be rolled back.
 * If the id is a generated one, removes the remains of all generated ids, because nobody uses one again. Warns of what
 * it can't remove; the id may then be refused.
 */
export async function removeLeftovers(
  { progress, environment, signal }: Work,
  backend: Pick<Backend<never>, "remove">,
  { root, clusterId }: { readonly root: string; readonly clusterId: string },
): Promise<void> {
  const isGenerated = temporaryClusterIds.test(clusterId);
  const creations = await abandonedCreations(root, isGenerated ? temporaryClusterIds : clusterId);
  if (creations.length === 0) return;
  using step = progress.start("Remove the remains of an interrupted create");
  await Promise.all(
    creations.map(async ({ directory, creation }) => {
      try {
        await closeMasterConnections(directory, environment);
        await backend.remove(
          { id: creation.clusterId, creationId: creation.creationId, directory },
          signal,
        );
        // Its key no longer opens anything.
        await rm(directory, { recursive: true, force: true });
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ClusterError) || error.transient) throw error;
        progress.warn(messageOf(error));
      }
    }),
  );
  step.done();
}
