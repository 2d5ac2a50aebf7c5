import { renderSshConfig } from "../../ssh/config.ts";
import { creationFiles } from "../../system/files/creation-folder.ts";
import { clusterKey, keyMissing } from "./cluster-key.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";

/** Returns an OpenSSH configuration with one `Host` per running node. Throws `key-missing` if this machine cannot log in. */
export async function sshConfig(cluster: ClusterRecord): Promise<string> {
  if (!(await clusterKey(cluster)).isHere) throw keyMissing(cluster);
  const files = creationFiles(cluster.directory);
  const reachable = cluster.nodes.filter((node) => node.state === "running" && node.ssh.host !== "");
  return renderSshConfig(reachable, { identityFile: files.privateKey, knownHostsFile: files.knownHosts });
}
