import { randomBytes } from "node:crypto";
import { ClusterError } from "../../../errors.ts";
import { isRangeTaken } from "../engine/engine-errors.ts";
import type { Engine } from "../engine/engine.ts";
import { type CreationName, type LabelValues, labelArguments, networkName } from "../records/labels.ts";
import { addressNumber, inspect, parseNetworkAddress, readContainers } from "../records/read-containers.ts";

type NewNetwork = CreationName & { readonly labels: LabelValues };

/**
 * Creates a bridge for the cluster; the engine picks its addresses. Throws `capacity-lacking` if the engine has none
 * left. The name contains the creation's id, because Docker 20 can create two networks of the same name at the same
 * moment, and then starts no container in either.
 */
export async function createNetwork(
  engine: Engine,
  { clusterId, creationId, labels }: NewNetwork,
  words: readonly string[] = [],
): Promise<void> {
  const name = networkName({ clusterId, creationId });
  await engine.change({ words: ["network", "create", "--driver=bridge", ...words, ...labelArguments(labels), name] });
}

const mostRanges = 32;

/**
 * Creates a bridge whose addresses overlap with none of the given networks, such as `172.18.0.2/16`, which the nodes reach in another way. Returns its
 * range; the bridge grants each address in it on request, because the range was chosen here: it is the first free one that the engine offers. If that
 * overlaps, a temporary network occupies it while the engine is asked again; if this program is killed, `destroy` removes that network.
 */
export async function createNetworkApart(
  engine: Engine,
  network: NewNetwork,
  known: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  const { clusterId, creationId } = network;
  const remove = async (name: CreationName): Promise<unknown> =>
    engine.change({ words: ["network", "rm", networkName(name)] });
  const holders: CreationName[] = [];
  try {
    for (let tries = 0; tries < mostRanges; tries += 1) {
      signal.throwIfAborted();
      await createNetwork(engine, network);
      const ranges = await rangesOf(engine, network, signal);
      await remove({ clusterId, creationId });
      const [range] = ranges;
      const overlaps = ranges.some((each) => known.some((address) => overlap(each, address)));
      if (range !== undefined && !overlaps && (await createWithRange(engine, network, range))) return range;
      if (!overlaps) continue;
      const holder = { clusterId, creationId: randomBytes(8).toString("hex") };
      await createNetwork(engine, { ...holder, labels: holder });
      holders.push(holder);
    }
  } finally {
    for (const holder of holders) await remove(holder);
  }
  throw new ClusterError(
    "capacity-lacking",
    `${engine.kind.title} has no range of addresses apart from the snapshot's.`,
    {
      hint: "Give the engine more ranges: default-address-pools of Docker, default_subnet_pools of Podman.",
    },
  );
}

async function rangesOf(engine: Engine, network: CreationName, signal: AbortSignal): Promise<readonly string[]> {
  const named = { names: [networkName(network)], kind: "network" } as const;
  const networks = (await inspect(engine, named, signal)).map((each) => engine.kind.readNetwork(each));
  return readContainers({ networks, containers: [] }).networks.flatMap((each) => each.ranges);
}

/** Resolves with `false` if somebody else has taken the range meanwhile. */
async function createWithRange(engine: Engine, network: NewNetwork, range: string): Promise<boolean> {
  const [gateway] = addressesIn(range, 0);
  const words = [`--subnet=${range}`, `--gateway=${gateway}`];
  try {
    await createNetwork(engine, network, words);
    return true;
  } catch (error) {
    if (isRangeTaken(error)) return false;
    throw error;
  }
}

/** Returns the gateway's address in a range such as `172.18.0.0/16`, then those of this many nodes. Throws `capacity-lacking`. */
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
        hint: "Give the engine larger ranges: default-address-pools of Docker, default_subnet_pools of Podman.",
      },
    );
  return Array.from({ length: count + 1 }, (_, index) => addressText(first + index));
}

const addressText = (number: number): string => [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join(".");

/** Whether two networks have addresses in common, given one address of each with the network's bits. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => parseNetworkAddress(text)?.split("/"));
  if (a === undefined || b === undefined) return false;
  const size = 2 ** (32 - Math.min(Number(a[1]), Number(b[1])));
  const networkOf = ([address = ""]: readonly string[]): number => Math.floor(addressNumber(address) / size);
  return networkOf(a) === networkOf(b);
}
