import { join } from "node:path";
import {
  type ClusterRecord,
  type NodeRecord,
  type NodeState,
  byIdAndAge,
  byRoleAndIndex,
  localClusterState,
  nodeHostname,
  webPortsOf,
} from "../../../model/cluster-record.ts";
import {
  abandonedCreations,
  creationDirectory,
  isCreationUnderWay,
  recordedCreations,
} from "../../../store/creation-folder.ts";
import { stateFolder } from "../../../store/state-folder.ts";
import type { Clock, Environment } from "../../../system/runtime.ts";
import { isOver } from "../../shared/lifetimes.ts";
import { clusterExists } from "../../shared/machine-errors.ts";
import { type Engine, removalCommand } from "../engine/engine.ts";
import type { PassageTo } from "../engine/passage.ts";
import { endStatus, forcedEndStatus } from "../launch/self-reboot.ts";
import { readSnapshots } from "../snapshots/read-snapshots.ts";
import { type CreationName, containerName, networkName } from "./labels.ts";
import {
  type ClusterNetwork,
  type ContainerReading,
  type NetworkFacts,
  type NodeContainer,
  type Selection,
  describe,
  lostNetwork,
  readContainers,
} from "./read-containers.ts";

/** Nodes accept root's login; a container has no other users of its own. */
const sshUser = "root";

/** Everything of ours that the engine has. */
export interface Inventory {
  readonly containers: readonly NodeContainer[];
  readonly networks: readonly NetworkFacts[];
  /** The ids of creations whose program died before they were complete: nothing will start the rest. */
  readonly abandoned: ReadonlySet<string>;
}

interface RecordPlace {
  /** The folder of this machine's creations. */
  readonly root: string;
  readonly passageTo: PassageTo;
}

/**
 * Groups containers and networks into clusters. Every cluster has a network. A network alone is a cluster too, because
 * there is something to destroy.
 */
export function toClusters(
  { containers, networks, abandoned }: Inventory,
  { root, passageTo }: RecordPlace,
): readonly ClusterRecord[] {
  const byNetwork = Map.groupBy(containers, networkName);
  return networks
    .map((network) => {
      const { creationId } = network;
      const own = byNetwork.get(networkName(network)) ?? [];
      const isAbandoned = abandoned.has(creationId);
      return toCluster(network, own, { root, passageTo, isAbandoned });
    })
    .toSorted(byIdAndAge);
}

function toCluster(
  network: NetworkFacts,
  containers: readonly NodeContainer[],
  { root, ...circumstances }: RecordPlace & Pick<Circumstances, "isAbandoned">,
): ClusterRecord {
  const { clusterId, creationId, variant, distribution, counts } = network;
  const { webUi, platform, expiresAt } = network;
  const nodes = containers
    .map((container) => toNode(container, { ...circumstances, network }))
    .toSorted(byRoleAndIndex);
  return {
    id: clusterId,
    creationId,
    backend: "container",
    region: undefined,
    variant: variant ?? "oss",
    distribution: distribution ?? "unknown",
    state: localClusterState(nodes, counts),
    requested: counts,
    createdAt: earliest(containers),
    expiresAt,
    webUi,
    platform,
    nodes,
    directory: creationDirectory(root, clusterId, creationId),
  };
}

interface Circumstances {
  readonly network: Pick<NetworkFacts, "reach" | "webUi">;
  readonly passageTo: PassageTo;
  readonly isAbandoned: boolean;
}

function toNode(
  container: NodeContainer,
  { isAbandoned, ...circumstances }: Circumstances,
): NodeRecord {
  const known = nodeState(container);
  const wasNeverStarted = known === "starting" && isAbandoned;
  const state = wasNeverStarted ? "ended" : known;
  return {
    id: shortId(container),
    role: container.role,
    index: container.index,
    state,
    hostname: nodeHostname(container),
    containerName: containerName(container.clusterId, container),
    privateAddress: container.platformAddress ?? container.address,
    ...wayTo(container, circumstances),
    ...((state === "ended" || state === "stopped") && {
      stateReason: wasNeverStarted ? neverStartedText : endText(container),
    }),
  };
}

const neverStartedText = "the container was never started: its create was interrupted";

function wayTo(
  { id, address }: NodeContainer,
  { network: { reach, webUi }, passageTo }: Omit<Circumstances, "isAbandoned">,
) {
  const { http, https } = webPortsOf(webUi);
  const isDirect = reach === "direct";
  const host = address ?? "";
  const through = isDirect ? {} : { through: passageTo(id) };
  return {
    publicAddress: isDirect ? address : undefined,
    ssh: { host, port: 22, user: sshUser, ...through },
    web: { host, httpPort: http, httpsPort: https },
  };
}

function nodeState({ status }: NodeContainer): NodeState {
  switch (status) {
    case "running":
    case "paused":
      return status;
    case "exited":
    case "stopped":
      return "stopped";
    case "created":
    case "configured":
    case "initialized":
    case "restarting":
      return "starting";
    case "removing":
    case "stopping":
      return "ending";
    default:
      return "ended";
  }
}

function endText({ exitCode, wasKilledForMemory, error }: NodeContainer): string {
  const why = wasKilledForMemory
    ? " (a process in it was killed because memory ran out)"
    : error === undefined
      ? ""
      : `: ${error}`;
  const how = why === "" ? endings[exitCode] : undefined;
  return `the container stopped with status ${exitCode}${why}${how === undefined ? "" : ` (${how})`}`;
}

const rebooted = "it has rebooted itself; start it again";
const shutDown = "it was shut down";

/** What the statuses mean with which nodes end. */
const endings: Readonly<Record<number, string>> = {
  [endStatus["systemd-poweroff.service"]]: shutDown,
  [forcedEndStatus.powerOff]: shutDown,
  [endStatus["systemd-reboot.service"]]: rebooted,
  [forcedEndStatus.reboot]: rebooted,
  137: "its power was cut, or this computer ran out of memory",
};

export const shortId = ({ id }: Pick<NodeContainer, "id">): string => id.slice(0, 12);

function earliest(containers: readonly NodeContainer[]): Date | undefined {
  const times = containers
    .map(({ createdAt }) => createdAt?.getTime())
    .filter((time) => time !== undefined);
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}

export async function readInventory(
  engine: Engine,
  selection: Selection,
  root: string,
  signal: AbortSignal,
): Promise<Omit<Inventory, "networks"> & Pick<ContainerReading, "networks" | "foreignResources">> {
  const [described, recorded] = await Promise.all([
    describe(engine, selection, signal),
    recordedCreations(root),
  ]);
  const reading = readContainers({ ...described, recorded });
  const present = new Set(reading.networks.map(networkName));
  const missing = recorded.filter(
    (creation) => isSelected(selection, creation) && !present.has(networkName(creation)),
  );
  const areUnderWay = await Promise.all(
    missing.map(async ({ clusterId, creationId }) =>
      isCreationUnderWay(creationDirectory(root, clusterId, creationId)),
    ),
  );
  // Creations under way, such as the one that asks, have no snapshots yet.
  const lost = missing.filter((_, index) => areUnderWay[index] === false);
  const networks = [...reading.networks, ...(await restorableNetworks(engine, lost, signal))];
  const clusterIds = new Set(networks.map(({ clusterId }) => clusterId));
  const abandoned = await Promise.all(
    [...clusterIds].map(async (clusterId) => abandonedCreations(root, clusterId)),
  );
  return {
    ...reading,
    networks,
    abandoned: new Set(abandoned.flat().map(({ creation }) => creation.creationId)),
  };
}

function isSelected(selection: Selection, { clusterId, creationId }: CreationName): boolean {
  if (selection === "all") return true;
  return "clusterId" in selection
    ? selection.clusterId === clusterId
    : selection.creationId === creationId;
}

/**
 * Returns the networks of recorded creations that have nothing left but complete snapshots, such as
 * after a `system prune` of a stopped cluster.
 */
async function restorableNetworks(
  engine: Engine,
  creations: readonly CreationName[],
  signal: AbortSignal,
): Promise<readonly ClusterNetwork[]> {
  if (creations.length === 0) return [];
  const [only, ...others] = creations;
  const selection =
    only === undefined || others.length > 0 ? "all" : { creationId: only.creationId };
  const wanted = new Set(creations.map(networkName));
  const saved = (await readSnapshots(engine, selection, signal)).flatMap(
    ({ nodes }) => nodes ?? [],
  );
  const networks = saved
    .map(({ labels }) => lostNetwork(labels))
    .filter((each) => each !== undefined);
  const found = new Map(networks.map((network) => [networkName(network), network]));
  return [...found.values()].filter((network) => wanted.has(networkName(network)));
}

/**
 * Throws `cluster-exists` if the id is taken, except by remains of a creation that was killed on
 * this machine. Resolves with whether there are any.
 */
export async function assertIdCanBeClaimed(
  engine: Engine,
  {
    root,
    clusterId,
    clock,
    inventory: reading,
  }: {
    readonly root: string;
    readonly clusterId: string;
    readonly clock: Clock;
    /** With all that has this id, at least. */
    readonly inventory: Promise<Inventory>;
  },
) {
  const [inventory, abandoned] = await Promise.all([reading, abandonedCreations(root, clusterId)]);
  // Expired clusters are removed before the claim.
  const expired = inventory.networks.filter((network) => isOver(network, clock));
  const leaving = [...abandoned.map(({ creation }) => creation), ...expired].map(
    ({ creationId }) => creationId,
  );
  assertIdIsFree(engine, inventory, { clusterId, leaving });
  return { hasLeftovers: inventory.networks.some((network) => network.clusterId === clusterId) };
}

/**
 * Throws `cluster-exists` if anything with this cluster id exists; `leaving` are creations that are
 * about to be removed.
 */
export function assertIdIsFree(
  engine: Engine,
  inventory: Inventory,
  { clusterId, leaving }: { readonly clusterId: string; readonly leaving: readonly string[] },
): void {
  const isTaken = inventory.networks.some(
    (network) => network.clusterId === clusterId && !leaving.includes(network.creationId),
  );
  if (isTaken) throw clusterExists(clusterId, { removal: removalCommand(engine, clusterId) });
}

export const creationsRoot = (
  { kind }: Pick<Engine, "kind">,
  { environment }: { readonly environment: Environment },
): string => join(stateFolder(environment), "container", kind.name);
