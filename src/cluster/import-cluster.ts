import type { Backend } from "../backend/contract.ts";
import { ClusterError, hasErrorId, messageOf } from "../errors.ts";
import { runCommand } from "../references.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  isReachable,
  nodeReference,
} from "../model/cluster-record.ts";
import { targetOf } from "../ssh/connection/connection.ts";
import { openConnection } from "../ssh/connection/open-connection.ts";
import { hostName, knownHostsText, parseKnownHosts } from "../ssh/openssh-files.ts";
import { creationFiles, makeCreationFolder } from "../store/creation-folder.ts";
import { mapConcurrently } from "../system/concurrency.ts";
import { writePrivateFile } from "../system/files/private-file.ts";
import { readOwnTextIfThere } from "../system/files/read-text.ts";
import type { Work } from "../system/runtime.ts";
import { type HandOver, usedHereOnly } from "./export-cluster.ts";

/**
 * Stores a cluster's keys on this machine, after a login with them. Writes nothing if anything is
 * wrong: throws `cluster-not-found`, `host-key-changed` if a node presents another host key,
 * `connection-failed` if no node accepts the login, and `bad-usage` if this machine has other keys
 * for the cluster.
 */
export async function importCluster(
  work: Work,
  backend: Backend<unknown>,
  handOver: HandOver,
): Promise<ClusterRecord> {
  if (backend.cloud === undefined) throw usedHereOnly(backend.name);
  const cluster = await findHandedOver(backend, handOver, work.signal);
  const files = creationFiles(cluster.directory);
  const privateKey = await readOwnTextIfThere(files.privateKey);
  if (privateKey !== undefined && privateKey !== handOver.privateKey)
    throw otherKeys(cluster, files.privateKey);
  const pinned = new Map(parseKnownHosts((await readOwnTextIfThere(files.knownHosts)) ?? ""));
  const hostKeys = hostKeysOf(cluster, handOver);
  for (const [name, key] of hostKeys) {
    if (pinned.get(name)?.equals(key) === false) throw otherKeys(cluster, files.knownHosts);
  }
  await logIn(work, cluster, handOver);
  await makeCreationFolder(cluster.directory);
  await writePrivateFile(files.knownHosts, knownHostsText(new Map([...pinned, ...hostKeys])));
  // Last, because commands use a cluster whose key is here.
  await writePrivateFile(files.privateKey, handOver.privateKey);
  return cluster;
}

/** A key for any other host would be trusted when a node gets that host's address. */
function hostKeysOf({ nodes }: ClusterRecord, { hostKeys }: HandOver): ReadonlyMap<string, Buffer> {
  const own = new Set(nodes.map(({ ssh }) => hostName(ssh.host, ssh.port)));
  return new Map([...hostKeys].filter(([name]) => own.has(name)));
}

/** The id alone would also find a cluster that was created after the export. */
async function findHandedOver(
  backend: Backend<unknown>,
  { clusterId, creationId, region }: HandOver,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const cluster = await backend.find(clusterId, signal);
  // Another machine may have tags that make it look like a cluster with this id.
  const handedOver =
    cluster?.creationId === creationId
      ? cluster
      : (await backend.list(signal)).find(
          (each) => each.id === clusterId && each.creationId === creationId,
        );
  if (handedOver !== undefined) return handedOver;
  const facts = { cluster: clusterId, region };
  if (cluster !== undefined) {
    throw new ClusterError(
      "cluster-not-found",
      `The file is for an earlier cluster "${clusterId}" in ${region}.`,
      {
        hint: "That cluster has ended, and another has its id now. Export the new one on the machine that created it.",
        facts,
      },
    );
  }
  throw new ClusterError("cluster-not-found", `There is no cluster "${clusterId}" in ${region}.`, {
    hint: "The cluster has ended, or it belongs to another account: use credentials of the account in which it was created.",
    facts,
  });
}

const otherKeys = ({ id, directory }: ClusterRecord, path: string): ClusterError =>
  new ClusterError("bad-usage", `This computer has other keys for cluster "${id}", in ${path}.`, {
    hint: `Nothing was changed. If you trust the file more that you import, move ${directory} away first.`,
    facts: { cluster: id, path },
  });

const loginsAtOnce = 20;

/**
 * Logs in to every running node, strictly with the handed-over keys. Nodes that cannot be reached
 * are only reported if another one can.
 */
async function logIn(work: Work, { id, nodes }: ClusterRecord, handOver: HandOver): Promise<void> {
  using step = work.progress.start("Log in to the nodes");
  const running = nodes.filter(isReachable);
  const failures = await mapConcurrently(
    running,
    loginsAtOnce,
    async (node) => loginFailure(work, node, handOver),
    work.signal,
  );
  const failed = failures.filter((failure) => failure !== undefined);
  if (failed.length < running.length) {
    for (const error of failed) work.progress.warn(messageOf(error));
    return step.done();
  }
  throw new ClusterError(
    "connection-failed",
    failed[0] !== undefined
      ? messageOf(failed[0])
      : `Cluster "${id}" has no running node whose host key could be checked.`,
    { hint: unreachableHint, facts: { cluster: id }, cause: failed[0] },
  );
}

const unreachableHint = `Nothing was imported. If this computer's address is not admitted to the cluster, ${runCommand("admit", "run")} first.`;

/** Returns why a node cannot be logged in to; throws if it presents another host key. */
async function loginFailure(
  { clock, progress, signal }: Work,
  node: NodeRecord,
  { privateKey, hostKeys }: HandOver,
): Promise<ClusterError | undefined> {
  const key = hostKeys.get(hostName(node.ssh.host, node.ssh.port));
  if (key === undefined) return noHostKey(node);
  const options = { ...targetOf(node), privateKey, hostKeys: [key], clock, progress };
  try {
    await using _connection = await openConnection(options, signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (hasErrorId(error, "connection-failed")) return error;
    throw error;
  }
}

function noHostKey(node: NodeRecord): ClusterError {
  const name = nodeReference(node);
  const message = `The file has no host key for ${name} at ${node.ssh.host}.`;
  return new ClusterError("connection-failed", message, { facts: { node: name } });
}
