import { randomBytes } from "node:crypto";
import { ClusterError } from "../../../errors.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { isRangeTaken, prunedAdvice, rangesAdvice } from "../engine/engine-errors.ts";
import type { Reach } from "../engine/engine-kind.ts";
import type { Engine } from "../engine/engine.ts";
import {
  type CreationName,
  type LabelValues,
  labelArguments,
  networkName,
} from "../records/labels.ts";
import {
  type ClusterNetwork,
  addressNumber,
  inspect,
  parseNetworkAddress,
  readContainers,
} from "../records/read-containers.ts";

interface NewNetwork extends CreationName {
  readonly labels: LabelValues;
  readonly reach: Reach;
}

/** What only some networks need. */
interface NetworkWishes {
  /** Such as `172.18.0.0/16`; absent: the engine's choice. */
  readonly range?: string | undefined;
  readonly mtu?: number | undefined;
}

/**
 * The name contains the creation's id, because Docker 20 can create two networks of the same name
 * at the same moment, and then starts no container in either.
 */
async function create(
  engine: Engine,
  { labels, ...name }: NewNetwork,
  { range, mtu }: NetworkWishes,
): Promise<void> {
  const words = [
    ...(range === undefined ? [] : [`--subnet=${range}`, `--gateway=${addressesIn(range, 0)[0]}`]),
    ...(mtu === undefined ? [] : [`--opt=${engine.kind.defaultNetwork.mtuOption}=${mtu}`]),
    ...(labels.offline === undefined ? [] : engine.kind.offlineWords),
  ];
  await engine.change({
    words: [
      "network",
      "create",
      "--driver=bridge",
      ...words,
      ...labelArguments(labels),
      networkName(name),
    ],
  });
}

const remove = async (engine: Engine, name: CreationName): Promise<unknown> =>
  engine.change({ words: ["network", "rm", networkName(name)] });

const mostRanges = 32;

interface CreatedNetwork {
  /** Its addresses, such as `172.18.0.0/16`. */
  readonly range: string;
  /** See DescribedNetwork. */
  readonly bridge: unknown;
}

/**
 * Creates a bridge for the cluster, in which nodes can have the addresses that we choose. The engine offers its
 * first free range. If that overlaps with one of the `known` networks, such as `172.18.0.2/16`,
 * which the nodes reach in another way, a temporary network occupies it while the engine is asked
 * again; if this program is killed, `destroy` removes that network. Throws `capacity-lacking` if
 * the engine has no range left.
 */
export async function createNetwork(
  engine: Engine,
  network: NewNetwork,
  known: readonly string[],
  signal: AbortSignal,
): Promise<CreatedNetwork> {
  const mtu = await networkMtu(engine, network.reach, signal);
  const holders: CreationName[] = [];
  try {
    for (let tries = 0; tries < mostRanges; tries += 1) {
      signal.throwIfAborted();
      await create(engine, network, { mtu });
      const created = await readCreated(engine, network, signal);
      const { range } = created;
      const isUsable = !known.some((address) => overlap(range, address));
      if (isUsable && engine.kind.grantsAddresses) return created;
      await remove(engine, network);
      if (isUsable) {
        if (await claimRange(engine, network, { range, mtu }))
          return await readCreated(engine, network, signal);
        continue;
      }
      const { clusterId } = network;
      const holder = { clusterId, creationId: randomBytes(8).toString("hex") };
      await create(engine, { ...network, ...holder, labels: holder }, {});
      holders.push(holder);
    }
  } finally {
    for (const holder of holders) await remove(engine, holder);
  }
  throw new ClusterError(
    "capacity-lacking",
    `${engine.kind.title} has no range of addresses for another network.`,
    {
      hint: rangesAdvice,
    },
  );
}

/**
 * Creates a cluster's network again if somebody has removed it. Throws `capacity-lacking` if
 * another network has its addresses now.
 */
export async function restoreNetwork(
  engine: Engine,
  { id, labels, ranges: [range], ...name }: ClusterNetwork,
  signal: AbortSignal,
): Promise<void> {
  if (id !== undefined) return;
  const { clusterId, creationId } = name;
  const reach = labels.reach === "direct" ? "direct" : "engine";
  const mtu = await networkMtu(engine, reach, signal);
  if (await claimRange(engine, { clusterId, creationId, labels, reach }, { range, mtu })) return;
  throw new ClusterError(
    "capacity-lacking",
    `The network of cluster "${clusterId}" was removed, and another network has its addresses (${range}) now.`,
    {
      hint: `Find that network with ${engine.kind.name} network ls, remove it, and repeat the command.`,
      facts: { range },
    },
  );
}

/** Whether nobody else took the range first. */
async function claimRange(
  engine: Engine,
  network: NewNetwork,
  wishes: NetworkWishes,
): Promise<boolean> {
  try {
    await create(engine, network, wishes);
    return true;
  } catch (error) {
    if (isRangeTaken(error)) return false;
    throw error;
  }
}

async function readCreated(
  engine: Engine,
  network: CreationName,
  signal: AbortSignal,
): Promise<CreatedNetwork> {
  const named = { names: [networkName(network)], kind: "network" } as const;
  const networks = (await inspect(engine, named, signal)).map((each) =>
    engine.kind.readNetwork(each),
  );
  const [range] = readContainers({ networks, containers: [] }).networks.flatMap(
    ({ ranges }) => ranges,
  );
  if (range !== undefined) return { range, bridge: networks[0]?.bridge };
  const { title, name } = engine.kind;
  if (networks.length === 0)
    throw new ClusterError("engine-failed", `${title} no longer has the network that it created.`, {
      hint: prunedAdvice(name),
    });
  throw new ClusterError("engine-failed", `${title} created a network without IPv4 addresses.`, {
    hint: "Give the engine ranges of IPv4 addresses for its networks.",
  });
}

const usualMtu = 1500;

/**
 * Returns the size of packets that get through to other computers: the one that the engine is set
 * to, or that of this computer's way out if it is smaller, as in VPNs and clouds. Undefined if it
 * is the usual one.
 */
async function networkMtu(
  engine: Engine,
  reach: Reach,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { name, mtuOption } = engine.kind.defaultNetwork;
  const described = await inspect(engine, { names: [name], kind: "network" }, signal);
  const options = described.map((each) => engine.kind.readNetwork(each).options);
  const own = options.flatMap((each) => parseMtu(each?.[mtuOption]) ?? []);
  const outgoing = reach === "direct" ? await outgoingMtu() : undefined;
  const mtu = Math.min(own[0] ?? usualMtu, outgoing ?? Infinity);
  return mtu === usualMtu ? undefined : mtu;
}

/** Not below what IPv4 requires. */
const parseMtu = (text: unknown): number | undefined =>
  typeof text === "string" && /^\d{3,5}$/.test(text.trim()) && Number(text) >= 576
    ? Number(text)
    : undefined;

/** The MTU of the interface with this computer's default route; undefined if it has none. */
async function outgoingMtu(): Promise<number | undefined> {
  const routes = await readOwnText("/proc/net/route").catch(() => "");
  const [first] = routes
    .split("\n")
    .map((line) => line.split("\t"))
    .filter(([, destination, , , , , , mask]) => destination === "00000000" && mask === "00000000")
    .toSorted((a, b) => Number(a[6]) - Number(b[6]));
  if (first === undefined) return undefined;
  return parseMtu(await readOwnText(`/sys/class/net/${first[0]}/mtu`).catch(() => ""));
}

/**
 * Returns the gateway's address in a range such as `172.18.0.0/16`, then those of this many nodes.
 * Throws `capacity-lacking`.
 */
export function addressesIn(range: string, count: number): readonly string[] {
  const [base = "", bits] = range.split("/");
  const size = 2 ** (32 - Number(bits));
  const first = Math.floor(addressNumber(base) / size) * size + 1;
  // The last address is that of broadcasts.
  if (count + 3 > size)
    throw new ClusterError(
      "capacity-lacking",
      `The engine's range ${range} has too few addresses for ${count} nodes.`,
      {
        hint: rangesAdvice,
      },
    );
  return Array.from({ length: count + 1 }, (_, index) => addressText(first + index));
}

const addressText = (number: number): string =>
  [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join(".");

/** Whether two networks have addresses in common, given one address of each with the network's bits. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => parseNetworkAddress(text)?.split("/"));
  if (a === undefined || b === undefined) return false;
  const size = 2 ** (32 - Math.min(Number(a[1]), Number(b[1])));
  const networkOf = ([address = ""]: readonly string[]): number =>
    Math.floor(addressNumber(address) / size);
  return networkOf(a) === networkOf(b);
}
