import { randomBytes } from "node:crypto";
import { ClusterError } from "../../../errors.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import { isRangeTaken, prunedAdvice, rangesAdvice } from "../engine/engine-errors.ts";
import type { DescribedNetwork, Reach } from "../engine/engine-kind.ts";
import { readDefaultNetwork } from "../engine/default-network.ts";
import type { Engine } from "../engine/engine.ts";
import { ownInterfaces } from "../engine/passage.ts";
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
  /** Whether the engine would offer one of Docker's usual ranges, and this computer's routes show which of them it uses. */
  readonly hasUsualRanges?: boolean;
  /** Whether they show it only if the network's bridge is on this computer, which isn't known yet. */
  readonly mayBeElsewhere?: boolean;
  /** The engine's own network, where it has been asked for. */
  readonly usual?: DescribedNetwork;
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
): Promise<string> {
  const words = [
    ...(range === undefined ? [] : [`--subnet=${range}`, `--gateway=${addressesIn(range, 0)[0]}`]),
    ...(mtu === undefined ? [] : [`--opt=${engine.kind.defaultNetwork.mtuOption}=${mtu}`]),
    ...(labels.offline === undefined ? [] : engine.kind.offlineWords),
  ];
  return engine.change({
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
/** Of our choice. Each is tried only if the one before was taken meanwhile. */
const mostChosen = 4;

interface CreatedNetwork {
  /** Its addresses, such as `172.18.0.0/16`. */
  readonly range: string;
  /** See DescribedNetwork. */
  readonly bridge: unknown;
}

/**
 * Creates a bridge for the cluster, in which nodes can have the addresses that we choose. We choose
 * a free range where we know what the engine would offer; else the engine offers its first free
 * range. If that overlaps with one of the `known` networks, such as `172.18.0.2/16`, which the nodes
 * reach in another way, a temporary network occupies it while the engine is asked again; if this
 * program is killed, `destroy` removes that network. Throws `capacity-lacking` if the engine has no
 * range left.
 */
export async function createNetwork(
  engine: Engine,
  network: NewNetwork,
  known: readonly string[],
  signal: AbortSignal,
): Promise<CreatedNetwork> {
  const usual = network.usual ?? (await readDefaultNetwork(engine, signal));
  const mtu = await networkMtu(engine, network.reach, usual);
  const chosen = network.hasUsualRanges === true ? freeRanges(await usedNetworks(), known) : [];
  for (const range of chosen.slice(0, mostChosen)) {
    signal.throwIfAborted();
    const id = await claimRange(engine, network, { range, mtu });
    if (id === undefined) continue;
    const { bridge } = engine.kind.readNetwork({ Id: id });
    const isHere = typeof bridge === "string" && ownInterfaces().has(bridge);
    if (isHere || network.mayBeElsewhere !== true) return { range, bridge };
    await remove(engine, network);
    break;
  }
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
        if ((await claimRange(engine, network, { range, mtu })) !== undefined)
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
  const reach: Reach = labels.reach === "direct" ? "direct" : "engine";
  const mtu = await networkMtu(engine, reach, await readDefaultNetwork(engine, signal));
  const network: NewNetwork = { clusterId, creationId, labels, reach };
  if ((await claimRange(engine, network, { range, mtu })) !== undefined) return;
  throw new ClusterError(
    "capacity-lacking",
    `The network of cluster "${clusterId}" was removed, and another network has its addresses (${range}) now.`,
    {
      hint: `Find that network with ${engine.kind.name} network ls, remove it, and repeat the command.`,
      facts: { range },
    },
  );
}

/** Returns what the engine prints, such as the network's id; undefined if somebody else took the range first. */
async function claimRange(
  engine: Engine,
  network: NewNetwork,
  wishes: NetworkWishes,
): Promise<string | undefined> {
  try {
    return await create(engine, network, wishes);
  } catch (error) {
    if (isRangeTaken(error)) return undefined;
    throw error;
  }
}

/**
 * In Docker's order: other networks that this computer reaches by its router, so that no route shows
 * them, more often have addresses of the second group.
 * https://github.com/moby/moby/blob/v20.10.24/vendor/github.com/docker/libnetwork/ipamutils/utils.go
 */
const usualRanges = [
  Array.from({ length: 15 }, (_, place) => `172.${17 + place}.0.0/16`),
  Array.from({ length: 16 }, (_, place) => `192.168.${16 * place}.0/20`),
] as const;

/**
 * Returns Docker's usual ranges that overlap with none of these networks. In each group, they begin
 * with one at random, because others choose at the same time. Without any network that is used,
 * there is nothing to choose by.
 */
export function freeRanges(used: readonly string[], known: readonly string[]): readonly string[] {
  if (used.length === 0) return [];
  const taken = [...used, ...known];
  return usualRanges.flatMap((group) => {
    const free = group.filter((range) => !taken.some((network) => overlap(range, network)));
    const start = Math.floor(Math.random() * free.length);
    return [...free.slice(start), ...free.slice(0, start)];
  });
}

/** What routes and name servers of this computer say. By them, Docker itself avoids ranges. */
async function usedNetworks(): Promise<readonly string[]> {
  const [routes, ...resolvers] = await Promise.all([
    readRoutes(),
    ...resolverFiles.map(async (path) => readOwnText(path).catch(() => "")),
  ]);
  const servers = resolvers.join("\n").matchAll(/^nameserver\s+(\S+)/gm);
  return [
    ...routes.map(({ network }) => network),
    ...[...servers].map(([, server]) => `${server}/32`),
  ];
}

const resolverFiles = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"] as const;

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
  { options }: Pick<DescribedNetwork, "options">,
): Promise<number | undefined> {
  const own = parseMtu(options?.[engine.kind.defaultNetwork.mtuOption]);
  const outgoing = reach === "direct" ? await outgoingMtu() : undefined;
  const mtu = Math.min(own ?? usualMtu, outgoing ?? Infinity);
  return mtu === usualMtu ? undefined : mtu;
}

/** Not below what IPv4 requires. */
const parseMtu = (text: unknown): number | undefined =>
  typeof text === "string" && /^\d{3,5}$/.test(text.trim()) && Number(text) >= 576
    ? Number(text)
    : undefined;

/** The MTU of the interface with this computer's default route; undefined if it has none. */
async function outgoingMtu(): Promise<number | undefined> {
  const [first] = (await readRoutes())
    .filter(({ network }) => network === "0.0.0.0/0")
    .toSorted((a, b) => a.metric - b.metric);
  if (first === undefined) return undefined;
  return parseMtu(await readOwnText(`/sys/class/net/${first.device}/mtu`).catch(() => ""));
}

interface Route {
  readonly device: string;
  /** Such as `172.18.0.0/16`. */
  readonly network: string;
  readonly metric: number;
}

/** This computer's routes; none where there is no such file. */
const readRoutes = async (): Promise<readonly Route[]> =>
  parseRoutes(await readOwnText("/proc/net/route").catch(() => ""));

export function parseRoutes(text: string): readonly Route[] {
  const [, ...lines] = text.trim().split("\n");
  return lines.map((line) => {
    const [device = "", destination = "", , , , , metric, mask = ""] = line.split("\t");
    const bits = Number.parseInt(mask, 16).toString(2).replaceAll("0", "").length;
    // Its bytes are in the order of the processor.
    const bytes = Buffer.from(destination, "hex").toReversed();
    return { device, network: `${bytes.join(".")}/${bits}`, metric: Number(metric) };
  });
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
