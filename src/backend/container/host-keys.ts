import { parseKnownHosts } from "../../ssh/openssh-files.ts";
import { creationFiles } from "../../store/creation-folder.ts";
import { readOwnText } from "../../system/files/read-text.ts";
import type { Engine } from "./engine/engine.ts";
import type { NodeContainer } from "./records/read-containers.ts";

/** Ten times the length of an archive with a key. Root on the node can replace the key by a file of any length. */
const mostArchiveCharacters = 100_000;

/** Returns the host key in wire format, from a container that need not run. */
export async function readHostKey(
  engine: Engine,
  { id }: Pick<NodeContainer, "id">,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  const words = ["cp", `${id}:/etc/ssh/ssh_host_ed25519_key.pub`, "-"];
  const archive = await engine.ask({ words, keptCharacters: mostArchiveCharacters }, signal);
  const [, key] = /ssh-ed25519 ([A-Za-z0-9+/]{60,80}={0,2})/.exec(archive) ?? [];
  return key === undefined ? undefined : Buffer.from(key, "base64");
}

/** Returns the keys that are pinned for a cluster, by the host in known_hosts. */
export const readPins = async (
  directory: string,
): Promise<readonly (readonly [host: string, key: Buffer])[]> =>
  parseKnownHosts(await readOwnText(creationFiles(directory).knownHosts).catch(() => ""));
