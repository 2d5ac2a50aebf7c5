import type { Backend } from "../../backend/contract.ts";
import { ClusterError } from "../../errors.ts";
import { type ClusterRecord, nodeReference } from "../../model/cluster-record.ts";
import { hostName, parseKnownHosts } from "../../ssh/known-hosts.ts";
import { type CreationFiles, creationFiles } from "../../system/files/creation-folder.ts";
import { assertKeyIsHere } from "../connections/cluster-key.ts";
import { findCluster } from "../find-cluster.ts";
import { handOverText } from "./hand-over-file.ts";
import { readOwnText } from "../../system/files/read-text.ts";

/**
 * Returns the text of a file with which another computer can use the cluster. It holds the private key. Throws `key-missing` if this machine has no
 * key for the cluster, or no pinned host key for one of its nodes.
 */
export async function exportCluster(
  backend: Backend<unknown>,
  clusterId: string,
  signal: AbortSignal,
): Promise<string> {
  if (backend.admission === undefined) throw usedHereOnly(backend.name);
  const cluster = await findCluster(backend, clusterId, signal);
  await assertKeyIsHere(cluster);
  const { id, creationId, region } = cluster;
  if (region === undefined) throw new TypeError("A cluster without a region cannot be handed over");
  const files = creationFiles(cluster.directory);
  const hostKeys = await readHostKeys(cluster, files);
  const privateKey = await readOwnText(files.privateKey);
  return handOverText({ clusterId: id, creationId, region, privateKey, hostKeys });
}

/** The keys of the nodes that exist, without those of nodes that a failed launch had at other addresses. */
async function readHostKeys(cluster: ClusterRecord, files: CreationFiles): Promise<ReadonlyMap<string, Buffer>> {
  const pinned = new Map(parseKnownHosts(await readOwnText(files.knownHosts).catch(() => "")));
  const nodes = cluster.nodes.filter(({ state }) => state === "starting" || state === "running");
  const keys = nodes.map((node): readonly [string, Buffer] => {
    const name = hostName(node.ssh.host, node.ssh.port);
    const key = pinned.get(name);
    if (key === undefined) throw hostKeyMissing(cluster, nodeReference(node));
    return [name, key];
  });
  return new Map(keys);
}

/** Returns the error for clusters whose nodes only the machine that created them can reach. */
export const usedHereOnly = (kind: string): ClusterError =>
  new ClusterError("bad-usage", `Clusters of this kind (${kind}) are reached from their own machine only.`);

const hostKeyMissing = ({ id }: ClusterRecord, node: string): ClusterError =>
  new ClusterError("key-missing", `The host key of ${node} of cluster "${id}" is not on this machine.`, {
    hint: "The cluster is still being created: export it after the create command has ended.",
    facts: { cluster: id, node },
  });
