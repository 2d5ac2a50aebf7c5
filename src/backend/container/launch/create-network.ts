import { randomBytes } from "node:crypto";
import { ClusterError } from "../../../errors.ts";
import type { Engine } from "../engine/engine.ts";
import { type CreationName, type LabelValues, labelArguments, networkName } from "../records/labels.ts";
import { addressNumber, inspect, parseNetworkAddress, readContainers } from "../records/read-containers.ts";

type NewNetwork = CreationName & { readonly labels: LabelValues };

/**
 * Creates a bridge for the cluster; the engine picks its addresses. Throws `capacity-lacking` if the engine has none
 * left. The name contains the creation's id, because Docker 20 can create two networks of the same name at the same
 * moment, and then starts no container in either.
 */
export async function createNetwork(engine: Engine, { clusterId, creationId, labels }: NewNetwork): Promise<void> {
  const name = networkName({ clusterId, creationId });
  await engine.change({ words: ["network", "create", "--driver=bridge", ...labelArguments(labels), name] });
}

const mostRanges = 32;

/**
 * Creates a bridge whose addresses overlap with none of the given networks, such as `172.18.0.2/16`, which the nodes reach in another way. The engine
 * offers its first free range. If that overlaps, a temporary network occupies it while the engine is asked again; if this program is killed, `destroy`
 * removes that network.
 */
export async function createNetworkApart(
  engine: Engine,
  network: NewNetwork,
  known: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { clusterId, creationId } = network;
  const named = { names: [networkName(network)], kind: "network" } as const;
  const remove = async (name: CreationName): Promise<unknown> =>
    engine.change({ words: ["network", "rm", networkName(name)] });
  const holders: CreationName[] = [];
  try {
    for (let tries = 0; tries < mostRanges; tries += 1) {
      signal.throwIfAborted();
      await createNetwork(engine, network);
      const networks = (await inspect(engine, named, signal)).map((each) => engine.kind.readNetwork(each));
      const ranges = readContainers({ networks, containers: [] }).networks.flatMap((each) => each.ranges);
      if (!ranges.some((range) => known.some((address) => overlap(range, address)))) return;
      await remove({ clusterId, creationId });
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

/** Whether two networks have addresses in common, given one address of each with the network's bits. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => parseNetworkAddress(text)?.split("/"));
  if (a === undefined || b === undefined) return false;
  const size = 2 ** (32 - Math.min(Number(a[1]), Number(b[1])));
  const networkOf = ([address = ""]: readonly string[]): number => Math.floor(addressNumber(address) / size);
  return networkOf(a) === networkOf(b);
}
