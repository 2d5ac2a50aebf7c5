import type { Counts, NodeRecord, Variant, WebUi } from "../../../model/cluster-record.ts";
import { parseCreationId, parseIpv4, parseMoment } from "../../../model/parse-values.ts";
import * as read from "../../../model/reader.ts";
import { plainLine } from "../../../system/printable.ts";
import {
  type ForeignResource,
  type Reading,
  readEach,
  readTexts,
  shownId,
} from "../../shared/foreign-resource.ts";
import { indicates } from "../engine/engine-errors.ts";
import type { DescribedNetwork, Reach } from "../engine/engine-kind.ts";
import { type Engine, askJson } from "../engine/engine.ts";
import { ownInterfaces } from "../engine/passage.ts";
import {
  type CreationName,
  type LabelValues,
  containerName,
  labelNames,
  networkName,
  readLabels,
} from "./labels.ts";

export interface NetworkFacts {
  readonly clusterId: string;
  readonly creationId: string;
  readonly counts: Counts | undefined;
  readonly variant: Variant | undefined;
  readonly distribution: string | undefined;
  readonly webUi?: WebUi | undefined;
  readonly platform?: string | undefined;
  readonly expiresAt?: Date | undefined;
  readonly reach: Reach;
}

export interface ClusterNetwork extends NetworkFacts {
  /**
   * Undefined if somebody removed it, such as a `network prune` while the cluster was stopped: its
   * nodes' labels say what it was.
   */
  readonly id: string | undefined;
  readonly labels: LabelValues;
  /** The creations whose snapshots its nodes are copied from; see the label. */
  readonly copiedFrom: readonly string[];
  /** The ranges of its addresses, in the form of `172.18.0.0/16`. */
  readonly ranges: readonly string[];
}

/** A container that is a node of a cluster. */
export interface NodeContainer extends Pick<NodeRecord, "role" | "index"> {
  readonly id: string;
  readonly clusterId: string;
  readonly creationId: string;
  readonly createdAt: Date | undefined;
  /** The engine's name for the state: `created`, `running`, `exited` … */
  readonly status: string;
  readonly exitCode: number;
  readonly wasKilledForMemory: boolean;
  readonly error: string | undefined;
  readonly imageId: string;
  /** The volumes that belong to it alone. */
  readonly volumes: readonly NodeVolume[];
  /** The address in the cluster's network; undefined if it has none. */
  readonly address: string | undefined;
  /** How many bits of it are the network's. */
  readonly addressBits: number | undefined;
  /** The address by which the other nodes know it, if that is another one, because the cluster is a copy. */
  readonly platformAddress: string | undefined;
}

export interface NodeVolume {
  readonly name: string;
  /** Where the node has it. */
  readonly path: string;
}

export interface ContainerReading {
  readonly networks: readonly ClusterNetwork[];
  readonly containers: readonly NodeContainer[];
  readonly foreignResources: readonly ForeignResource[];
}

/** The engine's descriptions of networks and containers with our labels. */
interface Described {
  /** From `network inspect`, with the same field names for every engine. */
  readonly networks: readonly DescribedNetwork[];
  /** From `container inspect`. */
  readonly containers: readonly unknown[];
  /**
   * Creations of which this computer has a record: their containers are ours even without the
   * network. Absent: none.
   */
  readonly recorded?: readonly CreationName[];
  /** The interfaces of the network that this program is in; absent: not known, so no address is reached from here. */
  readonly interfaces?: ReadonlySet<string>;
}

/**
 * Decides which of them are ours. An image can carry our labels into any container created from it, but it can neither
 * name the container nor put it into a network. So a container is a node only if its labels have the expected shapes,
 * it has that node's name, and it is in the cluster's network, which itself must have the cluster's
 * labels and name. If that network is gone, the container must have been in it, and this computer
 * must have a record of the creation.
 */
export function readContainers({
  networks,
  containers,
  recorded = [],
  interfaces = new Set(),
}: Described): ContainerReading {
  const own = readEach("network", networks, (found) => readNetwork(found, interfaces), shownName);
  const present = new Set(own.read.map(networkName));
  const lost = lostNetworks(
    containers,
    recorded.map(networkName).filter((name) => !present.has(name)),
  );
  const all = [...own.read, ...lost];
  const nodes = readNodes(containers, all);
  return {
    networks: all,
    containers: nodes.read,
    foreignResources: [...own.foreignResources, ...nodes.foreignResources],
  };
}

/** Returns what the labels of nodes say about networks with these names, which somebody removed. */
function lostNetworks(
  containers: readonly unknown[],
  names: readonly string[],
): readonly ClusterNetwork[] {
  const wanted = new Set(names);
  const found = new Map<string, ClusterNetwork>();
  for (const container of containers) {
    const network = lostNetwork(readLabels(labelsOf(container)));
    if (network !== undefined && typeof readContainer(container, wanted) !== "string")
      found.set(networkName(network), network);
  }
  return [...found.values()];
}

/** What the labels of a node and of its image in a snapshot say about the node alone, or leave to the engine. */
const ofNodes: ReadonlySet<string> = new Set<keyof LabelValues>([
  "role",
  "index",
  "settings",
  "platformAddress",
  "range",
  "snapshot",
  "address",
  "addressBits",
  "volumeSize",
]);

/**
 * Returns what the labels of a node, or of its image in a snapshot, say about the node's network,
 * which somebody removed.
 */
export function lostNetwork(texts: LabelValues): ClusterNetwork | undefined {
  const labels: LabelValues = Object.fromEntries(
    Object.entries(texts).filter(([key]) => !ofNodes.has(key)),
  );
  const facts = readFacts(labels);
  if (typeof facts === "string") return undefined;
  const ranges = [parseNetworkAddress(texts.range)].filter((each) => each !== undefined);
  const copiedFrom = readCopiedFrom(labels);
  return { id: undefined, ...facts, reach: "engine", labels, ranges, copiedFrom };
}

/** Decides which containers are nodes, where the networks of the clusters are already known. */
export function readNodes(
  containers: readonly unknown[],
  networks: readonly NetworkFacts[],
): Reading<NodeContainer> {
  const names = new Set(networks.map(networkName));
  return readEach("container", containers, (found) => readContainer(found, names), shownName);
}

/** Docker calls a container `/name`. */
const nameOf = (name: unknown): string | undefined =>
  typeof name === "string" ? name.replace(/^\//, "") : undefined;

function shownName(found: unknown): string {
  if (!read.isMapping(found)) return "without a name";
  return shownId(nameOf(found["Name"] ?? found["name"]) ?? found["Id"] ?? found["id"]);
}

const parseId = read.matching(/^[0-9a-f]{64}$/);

/** Returns a network, or what is wrong with it. */
function readNetwork(
  description: DescribedNetwork,
  interfaces: ReadonlySet<string>,
): ClusterNetwork | string {
  const texts = readLabels(description.labels);
  const known = readFacts(texts);
  if (typeof known === "string") return known;
  const id = parseId(description.id);
  if (id === undefined) return "its id is malformed";
  if (description.name !== networkName(known))
    return "its name is not the name of its cluster's network";
  const ranges = anyList(description.ranges).flatMap((range) => parseNetworkAddress(range) ?? []);
  const reach = reachOf(texts, description.bridge, interfaces);
  return { id, ...known, reach, labels: texts, ranges, copiedFrom: readCopiedFrom(texts) };
}

/** What isn't known never counts as here. */
export const reachOf = (
  { reach }: LabelValues,
  bridge: unknown,
  interfaces: ReadonlySet<string>,
): Reach =>
  reach === "direct" && typeof bridge === "string" && interfaces.has(bridge) ? "direct" : "engine";

const readFacts = (texts: LabelValues) =>
  readTexts(
    { kind: "label", names: labelNames, texts },
    {
      required: ["clusterId", "creationId"],
      optional: ["counts", "variant", "distribution", "webUi", "platform", "expiresAt"],
    },
  );

export const readCopiedFrom = ({ copiedFrom = "" }: LabelValues): readonly string[] =>
  copiedFrom.split(" ").flatMap((text) => parseCreationId(text) ?? []);

/** Returns a container, or what is wrong with it. */
function readContainer(found: unknown, networkNames: ReadonlySet<string>): NodeContainer | string {
  if (!read.isMapping(found)) return "the engine does not describe it";
  const texts = readLabels(labelsOf(found));
  const known = readTexts(
    { kind: "label", names: labelNames, texts },
    { required: ["clusterId", "creationId", "role", "index"], optional: [] },
  );
  if (typeof known === "string") return known;
  const id = parseId(found["Id"]);
  if (id === undefined) return "its id is malformed";
  if (nameOf(found["Name"]) !== containerName(known.clusterId, known))
    return "its name does not match the node in its labels";
  const network = networkName(known);
  const settings = found["NetworkSettings"];
  const connected = read.field("Networks", read.field(network, read.anyMapping))(settings);
  if (connected === undefined || !networkNames.has(network))
    return "it is not in the network of the cluster in its labels";
  return {
    id,
    ...known,
    imageId: read.string(found["Image"]) ?? "",
    volumes: anyList(found["Mounts"])
      .map(readVolume)
      .filter((volume) => volume !== undefined),
    createdAt: parseMoment(found["Created"]),
    ...readState(found["State"]),
    address: parseIpv4(connected["IPAddress"]),
    addressBits: parseBits(connected["IPPrefixLen"]),
    platformAddress: parseNetworkAddress(texts.platformAddress)?.split("/")[0],
  };
}

const parseBits = read.refined(read.number, (bits) =>
  Number.isInteger(bits) && bits > 0 && bits <= 32 ? bits : undefined,
);

/** Reads an address with the bits of its network, such as `172.18.0.2/16`. */
export const parseNetworkAddress = read.refined(read.string, (text) => {
  const [address, bits, ...others] = text.split("/");
  const isRead =
    parseIpv4(address) !== undefined &&
    parseBits(Number(bits)) !== undefined &&
    others.length === 0;
  return isRead ? `${address}/${Number(bits)}` : undefined;
});

/** Numbers IPv4 addresses in the order in which the engine gives them. */
export const addressNumber = (address: string): number =>
  address.split(".").reduce((number, part) => number * 256 + Number(part), 0);

export const labelsOf = read.field("Config", read.field("Labels", read.anything));

const anyList = read.withDefault(read.list(read.anything), []);

function readState(found: unknown) {
  const state = read.anyMapping(found) ?? {};
  return {
    status: read.string(state["Status"]) ?? "",
    exitCode: read.number(state["ExitCode"]) ?? 0,
    wasKilledForMemory: state["OOMKilled"] === true,
    error: plainLine(state["Error"]) || undefined,
  };
}

/** Only a plain name and an absolute path, because they become words of a command. */
const readVolume = read.refined(
  read.object({
    Type: read.oneOf("volume"),
    Name: read.matching(/^[a-zA-Z0-9][\w.-]*$/),
    Destination: read.matching(/^\/[^:]+$/),
  }),
  ({ Name: name, Destination: path }): NodeVolume => ({ name, path }),
);

export type Selection = "all" | { readonly clusterId: string } | { readonly creationId: string };

/** Returns the engine's descriptions of things with our labels; see readContainers. Includes stopped containers. */
export async function describe(
  engine: Engine,
  selection: Selection,
  signal: AbortSignal,
): Promise<Described> {
  const [containers, networks] = await Promise.all([
    describeContainers(engine, selection, signal),
    describeNetworks(engine, selection, signal),
  ]);
  return { containers, networks, interfaces: ownInterfaces() };
}

export async function describeContainers(
  engine: Engine,
  selection: Selection,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const words = ["ps", "--all", "--quiet", "--no-trunc", filterWord(selection)];
  return describeEach(engine, { words, kind: "container" }, signal);
}

async function describeNetworks(
  engine: Engine,
  selection: Selection,
  signal: AbortSignal,
): Promise<readonly DescribedNetwork[]> {
  const words = ["network", "ls", "--quiet", "--no-trunc", filterWord(selection)];
  const described = await describeEach(engine, { words, kind: "network" }, signal);
  return described.map((description) => engine.kind.readNetwork(description));
}

/** Matches ids, and the names that Podman uses for networks. */
const nameShape = /^(?:sha256:)?[a-zA-Z0-9][a-zA-Z0-9_.-]{0,255}$/;

type ThingKind = "container" | "network" | "image" | "volume";

/** Describes the things whose ids or names the command prints. */
export async function describeEach(
  engine: Engine,
  { words, kind }: { readonly words: readonly string[]; readonly kind: ThingKind },
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const lines = (await engine.ask({ words }, signal))
    .split("\n")
    .filter((name) => nameShape.test(name));
  // An image with two names is printed twice.
  return inspect(engine, { names: [...new Set(lines)], kind }, signal);
}

/** Describes the things with these ids or names. The answer lacks those that are gone. */
export async function inspect(
  engine: Engine,
  { names, kind }: { readonly names: readonly string[]; readonly kind: ThingKind },
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  if (names.length === 0) return [];
  const accepts = (stderr: string): boolean => indicates(stderr, "gone");
  const answer = await askJson(engine, { words: [kind, "inspect", ...names], accepts }, signal);
  return anyList(answer);
}

export function filterWord(selection: Selection): string {
  if (selection === "all") return `--filter=label=${labelNames.clusterId}`;
  if ("clusterId" in selection)
    return `--filter=label=${labelNames.clusterId}=${selection.clusterId}`;
  return `--filter=label=${labelNames.creationId}=${selection.creationId}`;
}
