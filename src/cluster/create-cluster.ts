import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Backend, CreationRequest, Surroundings } from "../backend/backend.ts";
import { ClusterError } from "../errors.ts";
import type { ConnectionPool } from "../ssh/pool.ts";
import { creationDirectory, creationFiles } from "../system/creation-folder.ts";
import { makePrivateFolder, writePrivateFile } from "../system/private-file.ts";
import { stateFolder } from "../system/state-folder.ts";
import { openConnections } from "./cluster-connections.ts";
import { saveEvidence } from "./evidence.ts";
import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";

export interface ClusterCreation<Creation> extends CreationRequest<Creation> {
  /** Path of a private key of the user's own; undefined: one is made for this cluster. */
  readonly ownKey: string | undefined;
  readonly keepOnFailure: boolean;
  /** Clock time after which the creation is given up. */
  readonly deadlineMs: number;
  /** What is put on the machines as part of the creation: made once the way to the nodes is known. */
  readonly installer: (connections: ConnectionPool, signal: AbortSignal) => CreationInstaller;
}

/** The part of platform/installer.ts that a creation needs; the library's, which installs later, does nothing. */
export interface CreationInstaller extends AsyncDisposable {
  prepare(node: NodeRecord): void;
  readonly failure: Promise<never>;
  start(cluster: ClusterRecord): Promise<void>;
}

/**
 * Makes machines and starts the installation on them; on failure or abort nothing is left but the evidence in the cluster's state folder,
 * unless `keepOnFailure`. Fails with the errors of backend and installer, and as `deadline-passed`.
 */
export async function createCluster<Creation>(
  backend: Backend<Creation>,
  creation: ClusterCreation<Creation>,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const folder = await openFolder(backend, creation, surroundings);
  const failing = new AbortController();
  const either = AbortSignal.any([signal, failing.signal]);
  await using connections = openConnections(folder.directory, surroundings);
  await using installer = creation.installer(connections, either);
  installer.failure.catch((error: unknown) => failing.abort(error));
  const limit = setTimeout(() => failing.abort(tooSlow(creation)), creation.deadlineMs - surroundings.clock.now());
  const state = { hasEvidence: false };
  try {
    return await backend.provision(
      {
        ...creation,
        ...folder,
        connections,
        complete: async (cluster) => installer.start(cluster),
        onFailure: async (cluster, evidenceSignal) => {
          state.hasEvidence = true;
          await saveEvidence(
            backend,
            { cluster, connections, directory: folder.directory },
            surroundings,
            evidenceSignal,
          );
        },
      },
      (node) => installer.prepare(node),
      either,
    );
  } catch (error) {
    if (!creation.keepOnFailure) await forget(folder.directory, state.hasEvidence);
    throw error;
  } finally {
    clearTimeout(limit);
  }
}

/** Of a creation that failed, only what tells why is kept: its key opens nothing any more. */
async function forget(directory: string, hasEvidence: boolean): Promise<void> {
  await rm(hasEvidence ? creationFiles(directory).privateKey : directory, { recursive: true, force: true });
}

/** The creation's own folder on this machine, with the key that opens the nodes. */
async function openFolder<Creation>(
  backend: Backend<Creation>,
  creation: ClusterCreation<Creation>,
  { environment }: Surroundings,
): Promise<{ creationId: string; directory: string; publicKey: string }> {
  const { generateKeyPair, readKeyPair } = await import("../ssh/keys.ts");
  const comment = `cluster-e2e-${creation.clusterId}`;
  const keys = creation.ownKey === undefined ? generateKeyPair(comment) : await readKeyPair(creation.ownKey);
  const creationId = randomBytes(8).toString("hex");
  const root = join(stateFolder(environment), backend.name, backend.place?.name ?? "");
  const directory = creationDirectory(root, creation.clusterId, creationId);
  try {
    await makePrivateFolder(directory);
    await writePrivateFile(creationFiles(directory).privateKey, keys.privateKey);
  } catch (error) {
    throw folderRefused(directory, error);
  }
  return { creationId, directory, publicKey: keys.publicKey };
}

function folderRefused(directory: string, error: unknown): ClusterError {
  const reason = error instanceof Error ? error.message : String(error);
  return new ClusterError("machine-not-set-up", `The cluster's folder ${directory} cannot be made: ${reason}.`, {
    hint: "Its SSH key must be kept there. Name another place for state with XDG_STATE_HOME; nothing was launched.",
    facts: { directory },
    cause: error,
  });
}

function tooSlow(creation: Pick<ClusterCreation<unknown>, "clusterId">): ClusterError {
  return new ClusterError("deadline-passed", `Creating cluster "${creation.clusterId}" took longer than its limit.`, {
    hint: "Give it more time with --timeout, or see the log for what it waited for.",
    facts: { cluster: creation.clusterId },
  });
}
