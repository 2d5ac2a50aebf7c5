import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { nodeReference } from "../../../model/cluster-record.ts";
import { shellText, withoutHeader } from "../../../ssh/shell-text.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
import { outsideLine, outsideReason } from "../../../system/printable.ts";
import { retry } from "../../../system/retry.ts";
import type { Clock } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { readDefaultNetwork } from "../engine/default-network.ts";
import type { Engine } from "../engine/engine.ts";
import type { DescribedNetwork, EngineFacts } from "../engine/engine-kind.ts";
import { type LaunchPlan, createNode } from "../launch/launch.ts";
import { announceStart } from "../launch/self-reboot.ts";
import {
  type SystemFlags,
  nodeState,
  rememberedRights,
  systemFlags,
} from "../launch/system-flags.ts";
import {
  type LabelValues,
  draftImage,
  labelNames,
  networkName,
  snapshotImage,
} from "../records/labels.ts";
import { type NodeContainer, describeContainers, readNodes } from "../records/read-containers.ts";
import type { SavedNode } from "./read-snapshots.ts";
import { refillVolumes, saveVolumes } from "./saved-volumes.ts";
import detailsFile from "./file-details.py" with { type: "text" };
import keepFile from "./keep-files.sh" with { type: "text" };

export const savedAtOnce = 6;
/** A large file system on a slow disk takes minutes. */
const commitLimitMs = 30 * 60_000;

/**
 * Saves the file systems of these containers while all of them are paused. Gives the images their final names last: if
 * all names exist, the snapshot is complete. Resolves with the nodes whose extended attributes and
 * holes could not be saved.
 */
export async function saveNodes(
  engine: Engine,
  { containers, snapshot, rights, clock }: SavePlan,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const kept = await mapConcurrently(
    containers,
    savedAtOnce,
    async (node) => keepFiles(engine, node, signal),
    signal,
  );
  const rule = ruleOf(waits.containerPause, clock);
  await using _ = await retry(async () => pause(engine, containers), rule, signal);
  const sizes = await mapConcurrently(
    containers,
    savedAtOnce,
    async (node) => saveVolumes(engine, node, { snapshot, rights }),
    signal,
  );
  const commit = async (node: NodeContainer, index: number): Promise<unknown> =>
    engine.change({
      words: commitWords(node, snapshot, sizes[index] ?? 0),
      limitMs: commitLimitMs,
    });
  await mapConcurrently(containers, savedAtOnce, commit, signal);
  // If this program was killed, the engine would finish its last commit while the nodes already continue. Such a commit
  // only leaves a draft.
  await mapConcurrently(
    containers,
    savedAtOnce,
    async (node) => finish(engine, node, snapshot),
    signal,
  );
  return containers.filter((_node, index) => kept[index] === false).map(nodeReference);
}

/** Engines see a file below a folder of theirs, and silently leave out what then has more than 4,096 bytes. */
const longestPath = 3_840;

/**
 * Keeps what images of the engine lack, for start-system.sh. Resolves with `false` if that can't
 * include extended attributes and holes.
 */
async function keepFiles(
  engine: Engine,
  node: NodeContainer,
  signal: AbortSignal,
): Promise<boolean> {
  const script = shellText(keepFile, {
    STATE: nodeState,
    DETAILS: withoutHeader(detailsFile),
    MOST: String(longestPath),
  });
  const volumes = node.volumes.map(({ path }) => path);
  const words = ["exec", "--user=0:0", node.id, "/bin/sh", "-ec", script, "sh", ...volumes];
  const printed = (await engine.ask({ words, limitMs: commitLimitMs }, signal)).trim();
  if (printed.startsWith("long /")) throw tooLong(node, printed.slice("long ".length));
  return printed === "";
}

function tooLong(node: NodeContainer, path: string): ClusterError {
  const bytes = Buffer.byteLength(path);
  return new ClusterError(
    "machine-failed",
    `Cluster "${node.clusterId}" cannot be saved: ${nodeReference(node)} has a path of ${bytes} bytes, but an engine can lose those of more than ${longestPath}: ${outsideLine(path, 200)}`,
    {
      hint: "Remove it or shorten it.",
      facts: { node: nodeReference(node), path: outsideLine(path) },
    },
  );
}

async function finish(engine: Engine, node: NodeContainer, snapshot: string): Promise<void> {
  const draft = draftImage(node.creationId, snapshot, node);
  await engine.change({ words: ["tag", draft, snapshotImage(node.creationId, snapshot, node)] });
  await engine.change({ words: engine.kind.untagWords(draft) });
}

interface SavePlan {
  readonly containers: readonly NodeContainer[];
  readonly snapshot: string;
  readonly rights: readonly string[];
  readonly clock: Clock;
}

/** The containers continue when the result is disposed of, or when this process dies. */
async function pause(
  engine: Engine,
  containers: readonly NodeContainer[],
): Promise<AsyncDisposable> {
  const ids = containers.map(({ id }) => id);
  const unpausing = await engine.defer(["unpause", ...ids]);
  try {
    await engine.change({ words: ["pause", ...ids] });
  } catch (error) {
    // Some containers may be paused already.
    await unpausing.run();
    throw error;
  }
  return {
    [Symbol.asyncDispose]: async () => {
      const end = await unpausing.run();
      if (end.status === 0) return;
      const nodes = containers.map(nodeReference).join(", ");
      const reason = outsideReason(end.stderr) || `${engine.kind.title} does not answer`;
      throw new ClusterError("engine-failed", `The nodes ${nodes} are still paused: ${reason}.`, {
        hint: `Let them continue: ${engine.kind.name} unpause ${ids.map((id) => id.slice(0, 12)).join(" ")}`,
      });
    },
  };
}

/** The image inherits all labels of the container. */
function commitWords(
  node: NodeContainer,
  snapshot: string,
  volumeKilobytes: number,
): readonly string[] {
  const { address = "", addressBits } = node;
  const labels: LabelValues = {
    snapshot,
    address,
    ...(addressBits !== undefined && { addressBits: String(addressBits) }),
    volumeSize: String(volumeKilobytes),
  };
  const changes = Object.entries(labels).map(
    ([key, value]) => `--change=LABEL ${labelNames[key as keyof LabelValues]}=${value}`,
  );
  return [
    "commit",
    "--pause=false",
    ...changes,
    node.id,
    draftImage(node.creationId, snapshot, node),
  ];
}

export interface RestorePlan {
  readonly nodes: readonly SavedNode[];
  readonly system: SystemFlags;
  /** See `saveVolumes`. */
  readonly rights: readonly string[];
}

/** Returns the rights that containers of this image get, and how they are started. */
export async function nodeRights(
  engine: Engine,
  {
    image,
    root,
    facts,
    usual,
  }: {
    readonly image: string;
    readonly root: string;
    readonly facts: EngineFacts;
    /** The engine's own network, if it has been asked for. */
    readonly usual?: DescribedNetwork;
  },
  signal: AbortSignal,
) {
  const { kind } = engine;
  const memory = join(root, ".rights");
  const rights = await rememberedRights(engine, {
    facts,
    image,
    memory,
    usual: usual ?? (await readDefaultNetwork(engine, signal)),
  });
  return {
    rights: [...kind.systemWords, ...rights.words],
    system: systemFlags(kind, facts, rights),
  };
}

/** Creates and starts all nodes, at their former addresses, of a cluster that has only its network left. */
export async function restoreNodes(
  engine: Engine,
  plan: RestorePlan,
  signal: AbortSignal,
): Promise<readonly NodeContainer[]> {
  const { nodes } = plan;
  const ids = await createSavedNodes(engine, plan, signal);
  const start = async (id: string): Promise<void> => {
    // Not every storage driver shows start-system.sh that it is in another container.
    await announceStart(engine, { id }, 0);
    await engine.change({ words: ["start", id] });
  };
  await mapConcurrently([...ids.keys()], savedAtOnce, start, signal);
  const containers = await readCreated(engine, nodes, signal);
  assertAddresses(nodes, containers, engine);
  return containers;
}

/**
 * Creates all nodes with the contents of their volumes, but starts none. Resolves with the
 * containers' ids. The first node's name claims the cluster's id.
 */
export async function createSavedNodes<Node extends SavedNode>(
  engine: Engine,
  plan: RestorePlan & { readonly nodes: readonly Node[] },
  signal: AbortSignal,
) {
  const { nodes, rights } = plan;
  const ids = new Map<string, Node>();
  const create = async (node: Node): Promise<unknown> =>
    ids.set(await createNode(engine, launchPlan(plan, node), node), node);
  const [first, ...others] = nodes;
  if (first !== undefined) await create(first);
  await mapConcurrently(others, savedAtOnce, create, signal);
  if (nodes.every(({ volume }) => volume === undefined)) return ids;
  await mapConcurrently(
    await readCreated(engine, nodes, signal),
    savedAtOnce,
    async (container) => {
      const node = ids.get(container.id);
      if (node !== undefined) await refillVolumes(engine, container, { node, rights });
    },
    signal,
  );
  return ids;
}

function launchPlan({ system }: RestorePlan, node: SavedNode): LaunchPlan {
  const { role: _, index: __, ...labels } = node.labels;
  return {
    clusterId: node.clusterId,
    counts: node.counts,
    options: node.settings,
    image: node.image,
    addressOf: () => node.address,
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
  const unknown = { variant: undefined, distribution: undefined, reach: "engine" } as const;
  const network = { clusterId, creationId, counts, ...unknown };
  return readNodes(await describeContainers(engine, { creationId }, signal), [network]).read;
}

function assertAddresses(
  nodes: readonly SavedNode[],
  containers: readonly NodeContainer[],
  { kind }: Engine,
): void {
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
