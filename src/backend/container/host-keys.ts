import { ClusterError } from "../../errors.ts";
import { nodeReference } from "../../model/cluster-record.ts";
import { createKnownHosts, parseKnownHosts } from "../../ssh/openssh-files.ts";
import { creationFiles } from "../../store/creation-folder.ts";
import { readOwnText } from "../../system/files/read-text.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import type { Engine } from "./engine/engine.ts";
import type { NodeContainer } from "./records/read-containers.ts";

const atOnce = 6;

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

interface Started {
  readonly directory: string;
  readonly containers: readonly NodeContainer[];
}

/**
 * Pins the keys of nodes that are reached at ports, because the engine gives a container other ports at each start. Root on a node can replace its key,
 * so only keys that are already pinned are trusted. Throws `host-key-changed`.
 */
export async function pinPorts(
  engine: Engine,
  { directory, containers }: Started,
  signal: AbortSignal,
): Promise<void> {
  const pins = await readPins(directory);
  // Without pinned keys, nobody logs in from this machine.
  if (pins.length === 0) return;
  const knownHosts = createKnownHosts(creationFiles(directory).knownHosts);
  const pin = async (container: NodeContainer): Promise<void> => {
    const port = container.ports.get(22);
    if (port === undefined) return;
    const key = await readHostKey(engine, container, signal);
    if (key === undefined || !pins.some(([, pinned]) => pinned.equals(key)))
      throw unknownKey(container);
    await knownHosts.pin("127.0.0.1", port, key);
  };
  const published = containers.filter(({ reach }) => reach === "published");
  await mapConcurrently(published, atOnce, pin, signal);
}

function unknownKey(container: NodeContainer): ClusterError {
  const node = nodeReference(container);
  return new ClusterError(
    "host-key-changed",
    `${node} has a host key other than the pinned ones.`,
    {
      hint: "Somebody has replaced it on the node. Restore a snapshot, or create the cluster again.",
      facts: { node },
    },
  );
}
