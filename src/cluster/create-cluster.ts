import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Backend } from "../model/backend.ts";
import type { Creation, CreationFolder } from "../model/creation.ts";
import type { Runtime } from "../system/runtime.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { ClusterError, messageOf } from "../errors.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { closeMasterConnections } from "../ssh/session/master-connection.ts";
import {
  abandonedCreations,
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
import { type CreationInstaller, bringUpNodes } from "./create/bring-up-nodes.ts";
import { undoCreation } from "./create/undo-creation.ts";
import { saveFailureLogs } from "./logs/save-failure-logs.ts";
import { rm } from "node:fs/promises";

export interface ClusterCreation {
  readonly clusterId: string;
  /** Determines what is needed; see Backend.plan. */
  readonly plan: (signal: AbortSignal) => Promise<Creation>;
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
export async function createCluster(
  backend: Backend<never>,
  request: ClusterCreation,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const { clock, progress } = runtime;
  const folder = await lockFolder(backend, request, runtime);
  const { directory } = folder;
  await using connections = openConnections(directory, runtime);
  using limit = timeLimit(request.deadlineMs - clock.now(), creationTooSlow(request.clusterId));
  const either = AbortSignal.any([signal, limit.signal]);
  const made: { creation?: Creation } = {};
  using _remains = request.onAbandon(() => made.creation?.describeRemains() ?? "Nothing has been created.");
  try {
    const creation = await request.plan(either);
    made.creation = creation;
    for (const [label, value] of creation.summary.lines) progress.detail(1, `${label}: ${value}`);
    await removeLeftovers(backend, { root: folder.root, clusterId: request.clusterId }, runtime, either);
    await creation.claim(folder, either);
    const raising = {
      creation,
      count: creation.nodeCount,
      publicKey: folder.publicKey,
      logIn: await firstLogin({ directory, connections, creation, deadlineMs: request.deadlineMs }, runtime),
      installer: (inner: AbortSignal) => request.installer(connections, inner),
    };
    const cluster = await bringUpNodes(raising, runtime, either).catch(async (failure: unknown) => {
      if (either.aborted || (await creation.recover?.(failure, either)) !== true) throw failure;
      return bringUpNodes(raising, runtime, either);
    });
    await endCreation(directory, "finished");
    return cluster;
  } catch (error) {
    const { keepOnFailure } = request;
    const saveLogs = async (cluster: ClusterRecord, logsSignal: AbortSignal): Promise<void> =>
      saveFailureLogs(backend, { cluster, connections, directory }, runtime, logsSignal);
    const isInterrupted = signal.aborted;
    await undoCreation(
      { creation: made.creation, directory, keepOnFailure, saveLogs },
      { error, isInterrupted },
      runtime,
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
async function lockFolder(
  backend: Pick<Backend<never>, "name" | "place">,
  { clusterId, ownKey }: ClusterCreation,
  { environment }: Runtime,
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
    throw folderRefused(directory, error);
  }
  return { root, creationId, directory, publicKey: keys.publicKey };
}

function folderRefused(directory: string, error: unknown): ClusterError {
  const reason = messageOf(error);
  return new ClusterError("machine-not-set-up", `Cannot create the cluster's folder ${directory}: ${reason}.`, {
    hint: "The cluster's SSH key is kept there, so nothing was launched. Set XDG_STATE_HOME to another folder.",
    facts: { directory },
    cause: error,
  });
}

/** Returns the error for a creation whose time is over. */
export function creationTooSlow(clusterId: string): ClusterError {
  return new ClusterError("deadline-passed", `Creating cluster "${clusterId}" exceeded its time limit.`, {
    hint: "Allow more time with `timeout`, or see the log for what was slow.",
    facts: { cluster: clusterId },
  });
}

/**
 * Removes what earlier creations of this id left on this machine because they were killed or their roll-back failed. Reports what it can't remove;
 * the id may then be refused.
 */
async function removeLeftovers(
  backend: Pick<Backend<never>, "remove">,
  { root, clusterId }: { readonly root: string; readonly clusterId: string },
  { progress, environment }: Pick<Runtime, "progress" | "environment">,
  signal: AbortSignal,
): Promise<void> {
  const creations = await abandonedCreations(root, clusterId);
  if (creations.length === 0) return;
  using step = progress.start("Remove the remains of an interrupted create");
  await Promise.all(
    creations.map(async ({ directory, creation }) => {
      try {
        await closeMasterConnections(directory, environment);
        await backend.remove({ id: clusterId, creationId: creation.creationId, directory }, signal);
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
