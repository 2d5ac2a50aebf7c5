import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Backend } from "../model/backend.ts";
import type { Creation, CreationFolder, CreationRequest } from "../model/creation.ts";
import type { Surroundings } from "../system/surroundings.ts";
import { nodeCount } from "../model/cluster-shape.ts";
import { ClusterError } from "../errors.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import type { ConnectionPool } from "../ssh/connection/pool.ts";
import {
  beginCreation,
  creationDirectory,
  creationFiles,
  endCreation,
  makeCreationFolder,
} from "../system/files/creation-folder.ts";
import { writePrivateFile } from "../system/files/private-file.ts";
import { stateFolder } from "../system/files/state-folder.ts";
import { timeLimit } from "../system/time-limit.ts";
import { openConnections } from "./connections/cluster-connections.ts";
import { firstLogin } from "./create/first-login.ts";
import { type CreationInstaller, raiseNodes } from "./create/raise-nodes.ts";
import { removeLeftovers } from "./create/remove-leftovers.ts";
import { undoCreation } from "./create/undo-creation.ts";
import { saveEvidence } from "./logs/evidence.ts";

export interface ClusterCreation<Options> extends CreationRequest<Options> {
  /** Path of the user's own private key; undefined: a key is made for this cluster. */
  readonly ownKey: string | undefined;
  readonly keepOnFailure: boolean;
  /** Clock time at which the creation gives up. */
  readonly deadlineMs: number;
  /** Installs on the machines as part of the creation. */
  readonly installer: (connections: ConnectionPool, signal: AbortSignal) => CreationInstaller;
  /** Registers a description of what may be left behind if the program has to end at once. Disposed of with the creation. */
  readonly onAbandon: (describe: () => string) => Disposable;
}

/**
 * Creates a cluster's machines and starts the installation on them. It covers the whole life of a creation, for every backend: lock, plan, claim the
 * id and launch; then look, log in and prepare concurrently; then keep or roll back. After a failure or an abort only logs in the cluster's folder
 * remain, unless `keepOnFailure` is set. Throws the errors of the backend and the installer, `deadline-passed`, and the signal's reason.
 */
export async function createCluster<Options>(
  backend: Backend<Options>,
  request: ClusterCreation<Options>,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const { clock, progress } = surroundings;
  const folder = await lockFolder(backend, request, surroundings);
  const { directory } = folder;
  await using connections = openConnections(directory, surroundings);
  using limit = timeLimit(request.deadlineMs - clock.now(), tooSlow(request));
  const either = AbortSignal.any([signal, limit.signal]);
  const made: { creation?: Creation } = {};
  using _remains = request.onAbandon(() => made.creation?.describeRemains() ?? "Nothing has been made.");
  try {
    const creation = await backend.plan(request, either);
    made.creation = creation;
    for (const [label, value] of creation.summary.lines) progress.detail(1, `${label}: ${value}`);
    await removeLeftovers(backend, { root: folder.root, clusterId: request.clusterId }, surroundings, either);
    await creation.claim(folder, either);
    const raising = {
      creation,
      count: nodeCount(request.counts),
      publicKey: folder.publicKey,
      logIn: await firstLogin({ directory, connections, creation, deadlineMs: request.deadlineMs }, surroundings),
      installer: (inner: AbortSignal) => request.installer(connections, inner),
    };
    const cluster = await raiseNodes(raising, surroundings, either).catch(async (failure: unknown) => {
      if (either.aborted || (await creation.recover?.(failure, either)) !== true) throw failure;
      return raiseNodes(raising, surroundings, either);
    });
    await endCreation(directory, "finished");
    return cluster;
  } catch (error) {
    const { keepOnFailure } = request;
    const saveLogs = async (cluster: ClusterRecord, logsSignal: AbortSignal): Promise<void> =>
      saveEvidence(backend, { cluster, connections, directory }, surroundings, logsSignal);
    const isInterrupted = signal.aborted;
    await undoCreation(
      { creation: made.creation, directory, keepOnFailure, saveLogs },
      { error, isInterrupted },
      surroundings,
    );
    throw error;
  }
}

interface LockedFolder extends CreationFolder {
  /** The folder that holds all creations of this backend and place. */
  readonly root: string;
  /** The public half of the key that opens the nodes, as an `authorized_keys` line. */
  readonly publicKey: string;
}

/** Locks the creation's folder on this machine, which holds the key that opens the nodes. The folder belongs to this process until `endCreation`. */
async function lockFolder<Options>(
  backend: Backend<Options>,
  { clusterId, ownKey }: ClusterCreation<Options>,
  { environment }: Surroundings,
): Promise<LockedFolder> {
  const { generateKeyPair, readKeyPair } = await import("../ssh/keys.ts");
  const keys = ownKey === undefined ? generateKeyPair(`cluster-e2e-${clusterId}`) : await readKeyPair(ownKey);
  const creationId = randomBytes(8).toString("hex");
  const root = join(stateFolder(environment), backend.name, backend.place?.name ?? "");
  const directory = creationDirectory(root, clusterId, creationId);
  try {
    await makeCreationFolder(directory);
    await writePrivateFile(creationFiles(directory).privateKey, keys.privateKey);
    await beginCreation(directory, clusterId, creationId);
  } catch (error) {
    throw error instanceof ClusterError ? error : folderRefused(directory, error);
  }
  return { root, creationId, directory, publicKey: keys.publicKey };
}

function folderRefused(directory: string, error: unknown): ClusterError {
  const reason = error instanceof Error ? error.message : String(error);
  return new ClusterError("machine-not-set-up", `The cluster's folder ${directory} cannot be made: ${reason}.`, {
    hint: "Its SSH key must be kept there. Name another place for state with XDG_STATE_HOME; nothing was launched.",
    facts: { directory },
    cause: error,
  });
}

function tooSlow({ clusterId }: Pick<ClusterCreation<unknown>, "clusterId">): ClusterError {
  return new ClusterError("deadline-passed", `Creating cluster "${clusterId}" took longer than its limit.`, {
    hint: "Give it more time with `timeout`, or see the log for what it waited for.",
    facts: { cluster: clusterId },
  });
}
