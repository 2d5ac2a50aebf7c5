import { ClusterError } from "../../../errors.ts";
import { nodeReference } from "../../../model/cluster-record.ts";
import { mapConcurrently } from "../../../system/map-concurrently.ts";
import type { Engine } from "../engine/engine.ts";
import { createNode, type LaunchPlan } from "../launch/launch.ts";
import type { SystemFlags } from "../launch/system-flags.ts";
import { describeContainers } from "../records/describe.ts";
import { networkName } from "../records/names.ts";
import { type NodeContainer, readNodes } from "../records/read-containers.ts";
import { refillVolumes } from "./copy-volumes.ts";
import type { SavedNode } from "./read-snapshots.ts";

const atOnce = 6;

export interface RestorePlan {
  readonly nodes: readonly SavedNode[];
  readonly system: SystemFlags;
  /** See `saveVolumes`. */
  readonly rights: readonly string[];
}

/** Creates and starts all nodes of a cluster, of which only the network is left, at the addresses that they had. */
export async function restoreNodes(engine: Engine, plan: RestorePlan, signal: AbortSignal): Promise<void> {
  const { nodes, rights } = plan;
  const ids = new Map<string, SavedNode>();
  await mapConcurrently(
    nodes,
    atOnce,
    async (node) => ids.set(await createNode(engine, launchPlan(engine, plan, node), node), node),
    signal,
  );
  const created = await readCreated(engine, nodes, signal);
  await mapConcurrently(
    created,
    atOnce,
    async (container) => {
      const node = ids.get(container.id);
      if (node !== undefined) await refillVolumes(engine, container, { node, rights });
    },
    signal,
  );
  const inOrder = [...ids].toSorted(([, a], [, b]) => addressNumber(a.address) - addressNumber(b.address));
  await mapConcurrently(
    inOrder,
    engine.kind.grantsAddresses ? atOnce : 1,
    async ([id]) => engine.change({ words: ["start", id] }),
    signal,
  );
  assertAddresses(nodes, await readCreated(engine, nodes, signal), engine);
}

function launchPlan(engine: Engine, { system }: RestorePlan, node: SavedNode): LaunchPlan {
  const { role: _, index: __, ...labels } = node.labels;
  return {
    clusterId: node.clusterId,
    counts: node.counts,
    options: node.settings,
    image: node.image,
    reach: node.reach,
    ...(engine.kind.grantsAddresses && { address: node.address }),
    network: networkName(node),
    labels,
    system,
  };
}

async function readCreated(
  engine: Engine,
  nodes: readonly SavedNode[],
  signal: AbortSignal,
): Promise<readonly NodeContainer[]> {
  const [first] = nodes;
  if (first === undefined) return [];
  const { clusterId, creationId, counts } = first;
  const network = { clusterId, creationId, counts, variant: undefined, distribution: undefined };
  return readNodes(await describeContainers(engine, { creationId }, signal), [network]).read;
}

/** Sorts IPv4 addresses as the engine counts them. */
const addressNumber = (address: string): number =>
  address.split(".").reduce((number, part) => number * 256 + Number(part), 0);

function assertAddresses(nodes: readonly SavedNode[], containers: readonly NodeContainer[], { kind }: Engine): void {
  const moved = nodes.filter((node) => {
    const container = containers.find((each) => nodeReference(each) === nodeReference(node));
    return container?.address !== node.address;
  });
  const [first] = moved;
  if (first === undefined) return;
  throw new ClusterError(
    "engine-failed",
    `${kind.title} did not give ${moved.map(nodeReference).join(", ")} the address of the snapshot, such as ${first.address}.`,
    {
      hint: `Remove other containers from the network ${networkName(first)}, then restore again.`,
      facts: { nodes: moved.map(nodeReference) },
    },
  );
}
