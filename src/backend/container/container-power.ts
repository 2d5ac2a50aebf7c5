import { ClusterError } from "../../errors.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  nodeHostname,
  nodeReference,
} from "../../model/cluster-record.ts";
import { parseIpv4 } from "../../model/parse-values.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import type { Clock, Runtime } from "../../system/runtime.ts";
import { parseKnownHosts } from "../../ssh/openssh-files.ts";
import { creationFiles } from "../../store/creation-folder.ts";
import { readOwnText } from "../../system/files/read-text.ts";
import type { Power } from "../power.ts";
import { lockMachines } from "../shared/lock-machines.ts";
import { indicates } from "./engine/engine-errors.ts";
import type { Engine } from "./engine/engine.ts";
import { restoreNetwork } from "./launch/create-network.ts";
import { announceStart } from "./launch/self-reboot.ts";
import { containerName, networkName } from "./records/labels.ts";
import type { NodeContainer } from "./records/read-containers.ts";
import { readInventory } from "./records/records.ts";

const shutDownSeconds = 120;
const startsAtOnce = 6;

export function containerPower(engine: Engine, root: string, runtime: Runtime): Power {
  const change = async (
    cluster: ClusterRecord,
    nodes: readonly NodeRecord[],
    words: readonly string[],
    signal: AbortSignal,
  ): Promise<void> => {
    await using _ = await lockMachines({ ...runtime, signal }, cluster.directory);
    const ids = nodes.map(({ id }) => id);
    await engine.change({ words: [...words, ...ids], limitMs: (shutDownSeconds + 60) * 1000 });
  };
  return {
    stopsClocks: false,
    pause: async (cluster, nodes, signal) => change(cluster, nodes, ["pause"], signal),
    resume: async (cluster, nodes, signal) => change(cluster, nodes, ["unpause"], signal),
    // The engine cuts the power of a container that takes longer.
    shutDown: async (cluster, nodes, signal) =>
      change(cluster, nodes, ["stop", `--time=${shutDownSeconds}`], signal),
    cutPower: async (cluster, nodes, signal) => change(cluster, nodes, ["kill"], signal),
    start: async (cluster, nodes, signal) => {
      await using _ = await lockMachines({ ...runtime, signal }, cluster.directory);
      await startAgain(engine, { cluster, nodes, root, clock: runtime.clock }, signal);
    },
  };
}

interface Start {
  readonly cluster: ClusterRecord;
  readonly nodes: readonly NodeRecord[];
  readonly root: string;
  readonly clock: Clock;
}

/** A container of the cluster, and the address that its host key is pinned to. */
interface PinnedContainer {
  readonly container: NodeContainer;
  readonly address: string | undefined;
}

/** Starts containers at the addresses that the other nodes and the known hosts have for them. */
async function startAgain(
  engine: Engine,
  { cluster, nodes, root, clock }: Start,
  signal: AbortSignal,
): Promise<void> {
  const inventory = await readInventory(engine, { clusterId: cluster.id }, root, signal);
  const network = inventory.networks.find(({ creationId }) => creationId === cluster.creationId);
  if (network !== undefined) await restoreNetwork(engine, network, signal);
  const pinned = await readPinned(engine, cluster, root, signal);
  const wanted = pinned.filter(
    ({ container }) =>
      container.status !== "running" && nodes.some(({ id }) => container.id.startsWith(id)),
  );
  const nowMs = clock.now();
  await mapConcurrently(
    wanted,
    startsAtOnce,
    async (member) => startOne(engine, member, nowMs),
    signal,
  );
  await settle(engine, { cluster, pinned: wanted, root }, signal);
}

const isStopped = ({ container: { status } }: Pick<PinnedContainer, "container">): boolean =>
  status === "exited" || status === "stopped";

async function startOne(
  engine: Engine,
  { container, address }: PinnedContainer,
  nowMs: number,
): Promise<void> {
  const { change } = engine;
  const network = networkName(container);
  if (address !== undefined) {
    const alias = nodeHostname(container);
    const accepts = (stderr: string): boolean => indicates(stderr, "notConnected");
    await change({ words: ["network", "disconnect", network, container.id], accepts });
    await change({
      words: ["network", "connect", `--ip=${address}`, `--alias=${alias}`, network, container.id],
    });
  }
  await announceStart(engine, container, nowMs);
  await change({ words: ["start", container.id] });
}

/**
 * Returns the cluster's containers. The address of a running container is its current one; that of
 * a stopped container is the one to which its host key is pinned.
 */
async function readPinned(
  engine: Engine,
  cluster: ClusterRecord,
  root: string,
  signal: AbortSignal,
): Promise<readonly PinnedContainer[]> {
  const pins = await readPins(cluster.directory);
  return mapConcurrently(
    await readContainersOf(engine, cluster, root, signal),
    startsAtOnce,
    async (container) => {
      if (!isStopped({ container })) return { container, address: container.address };
      const hostKey = await readHostKey(engine, container, signal);
      const [address] = pins.find(([, key]) => hostKey?.equals(key) === true) ?? [];
      return { container, address: parseIpv4(address) };
    },
    signal,
  );
}

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
const readPins = async (directory: string) =>
  parseKnownHosts(await readOwnText(creationFiles(directory).knownHosts).catch(() => ""));

async function readContainersOf(
  engine: Engine,
  { id: clusterId, creationId }: ClusterRecord,
  root: string,
  signal: AbortSignal,
): Promise<readonly NodeContainer[]> {
  const { containers } = await readInventory(engine, { clusterId }, root, signal);
  return containers.filter((container) => container.creationId === creationId);
}

/** Stops containers that got another address than the platform knows. */
async function settle(
  engine: Engine,
  {
    cluster,
    pinned,
    root,
  }: Pick<Start, "cluster" | "root"> & { readonly pinned: readonly PinnedContainer[] },
  signal: AbortSignal,
): Promise<void> {
  const now = await readContainersOf(engine, cluster, root, signal);
  const currentOf = ({ container }: PinnedContainer): NodeContainer =>
    now.find(({ id }) => id === container.id) ?? container;
  const moved = pinned.filter(
    (member) => member.address !== undefined && currentOf(member).address !== member.address,
  );
  const [first] = moved;
  if (first === undefined) return;
  await engine.change({ words: ["kill", ...moved.map(({ container }) => container.id)] });
  const names = moved.map(({ container }) => nodeReference(container));
  throw new ClusterError(
    "engine-failed",
    `${engine.kind.title} did not give ${names.join(", ")} the former address, such as ${first.address}; stopped again.`,
    {
      hint: `Remove other containers from the network ${networkName(first.container)}, then start the nodes again.`,
      facts: {
        nodes: names,
        containers: moved.map(({ container }) => containerName(cluster.id, container)),
      },
    },
  );
}
