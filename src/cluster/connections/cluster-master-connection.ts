import { stat } from "node:fs/promises";
import type { ClusterName } from "../../model/cluster-record.ts";
import { type MasterConnection, masterConnection } from "../../ssh/session/master-connection.ts";
import { creationFiles } from "../../system/files/creation-folder.ts";
import type { Environment } from "../../system/runtime.ts";
import { readOwnText } from "../../system/files/read-text.ts";

/**
 * Returns the master connection to one node of a cluster, for sessions with this ssh configuration. It is another one as soon as an address, a pinned
 * host key or the login key changes: then ssh logs in again and checks them. Undefined if this machine lacks a key.
 */
export async function clusterMasterConnection(
  { directory }: Pick<ClusterName, "directory">,
  { sshConfig, host }: { readonly sshConfig: string; readonly host: string },
  environment: Environment,
): Promise<MasterConnection | undefined> {
  const files = creationFiles(directory);
  try {
    const [knownHosts, key] = await Promise.all([readOwnText(files.knownHosts), stat(files.privateKey)]);
    const keyVersion = [key.ino, key.size, key.mtimeMs, key.mode].join(" ");
    return masterConnection(directory, [host, sshConfig, knownHosts, keyVersion], environment);
  } catch {
    return undefined;
  }
}
