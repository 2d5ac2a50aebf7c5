import { writeFile } from "node:fs/promises";
import type { NodeRecord } from "../../src/model/cluster-record.ts";
import { knownHostsText } from "../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../src/store/creation-folder.ts";

const keyType = Buffer.from("\0\0\0\x0bssh-ed25519\0\0\0 ", "latin1");
const hostKey = Buffer.concat([keyType, Buffer.alloc(32, 7)]);

/** A node in this state, whose host key is pinned in the cluster's folder. */
export async function pinnedNode(
  directory: string,
  state: NodeRecord["state"] = "running",
): Promise<NodeRecord> {
  const ssh = { host: "192.0.2.1", port: 22, user: "root" };
  const text = knownHostsText(new Map([[ssh.host, hostKey]]));
  await writeFile(creationFiles(directory).knownHosts, text);
  return { id: "i-0", role: "master", index: 0, state, ssh } as unknown as NodeRecord;
}
