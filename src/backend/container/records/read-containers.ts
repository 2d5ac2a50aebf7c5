import type { Counts, NodeRecord, Variant, WebUi } from "../../../model/cluster-record.ts";
import {
  parseClusterId,
  parseCounts,
  parseCreationId,
  parseDistribution,
  parseIndex,
  parseIpv4,
  parseMoment,
  parsePort,
  parseRole,
  parseVariant,
  parseWebUi,
} from "../../../model/parse-values.ts";
import { isMapping } from "../../../system/checked.ts";
import { plainLine } from "../../../system/printable.ts";
import { type ForeignResource, complete, shownId } from "../../shared/foreign-resource.ts";
import { means } from "../engine/engine-errors.ts";
import type { DescribedNetwork, Reach } from "../engine/engine-kind.ts";
import { type Engine, askJson } from "../engine/engine.ts";
import { containerName, labelNames, networkName, readLabels } from "./labels.ts";

/** What the labels of a cluster's network say about the cluster. */
export interface NetworkFacts {
  readonly clusterId: string;
  readonly creationId: string;
  readonly counts: Counts | undefined;
  readonly variant: Variant | undefined;
  readonly distribution: string | undefined;
  readonly webUi?: WebUi | undefined;
}

export interface ClusterNetwork extends NetworkFacts {
  readonly id: string;
}

/** A container that is a node of a cluster. */
export interface NodeContainer extends Pick<NodeRecord, "role" | "index"> {
  readonly id: string;
  readonly clusterId: string;
  readonly creationId: string;
  readonly reach: Reach;
  readonly createdAt: Date | undefined;
  /** The engine's name for the state: `created`, `running`, `exited` … */
  readonly status: string;
  readonly exitCode: number;
  readonly wasKilledForMemory: boolean;
  readonly error: string | undefined;
  /** The id of the image that it was made of. */
  readonly imageId: string;
  /** The volumes that belong to it alone. */
  readonly volumes: readonly NodeVolume[];
  /** The address in the cluster's network; undefined if it has none. */
  readonly address: string | undefined;
  /** Maps the node's ports to the ports of 127.0.0.1 that lead to them. */
  readonly ports: ReadonlyMap<number, number>;
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
export interface Described {
  /** From `network inspect`, with the same field names for every engine. */
  readonly networks: readonly DescribedNetwork[];
  /** From `container inspect`. */
  readonly containers: readonly unknown[];
}

/**
 * Decides which of them are ours. An image can carry our labels into any container created from it, but it can neither
 * name the container nor put it into a network. So a container is a node only if its labels have the expected shapes,
 * it has that node's name, and it is in the cluster's network, which itself must have the cluster's labels and name.
 */
export function readContainers({ networks, containers }: Described): ContainerReading {
  const own = readEach("network", networks, readNetwork);
  const nodes = readNodes(containers, own.read);
  return {
    networks: own.read,
    containers: nodes.read,
    foreignResources: [...own.foreignResources, ...nodes.foreignResources],
  };
}

/** Decides which containers are nodes, where the networks of the clusters are already known. */
export function readNodes(containers: readonly unknown[], networks: readonly NetworkFacts[]): Reading<NodeContainer> {
  const names = new Set(networks.map(networkName));
  return readEach("container", containers, (found) => readContainer(found, names));
}

interface Reading<Read> {
  readonly read: readonly Read[];
  readonly foreignResources: readonly ForeignResource[];
}

function readEach<Found, Read extends object>(
  kind: string,
  found: readonly Found[],
  readOne: (one: Found) => Read | string,
): Reading<Read> {
  const results = found.map((one) => ({ one, result: readOne(one) }));
  return {
    read: results.map(({ result }) => result).filter((result) => typeof result !== "string"),
    foreignResources: results.flatMap(({ one, result }) =>
      typeof result === "string" ? [{ what: `${kind} ${shownName(one)}`, why: result }] : [],
    ),
  };
}

/** Docker calls a container `/name`. */
const nameOf = (name: unknown): string | undefined => (typeof name === "string" ? name.replace(/^\//, "") : undefined);

function shownName(found: unknown): string {
  if (!isMapping(found)) return "without a name";
  return shownId(nameOf(found["Name"] ?? found["name"]) ?? found["Id"] ?? found["id"]);
}

/** Returns a network, or what is wrong with it. */
function readNetwork({ id, name, labels }: DescribedNetwork): ClusterNetwork | string {
  const texts = readLabels(labels);
  const required = { clusterId: parseClusterId(texts.clusterId), creationId: parseCreationId(texts.creationId) };
  const optional = {
    counts: parseCounts(texts.counts),
    variant: parseVariant(texts.variant),
    distribution: parseDistribution(texts.distribution),
    webUi: parseWebUi(texts.webUi),
  };
  const known = complete({ kind: "label", names: labelNames, texts }, required, optional);
  if (typeof known === "string") return known;
  if (typeof id !== "string" || !/^[0-9a-f]{64}$/.test(id)) return "its id is malformed";
  if (name !== networkName(known)) return "its name is not the name of its cluster's network";
  return { id, ...known, ...optional };
}

/** Returns a container, or what is wrong with it. */
function readContainer(found: unknown, networkNames: ReadonlySet<string>): NodeContainer | string {
  if (!isMapping(found)) return "the engine does not describe it";
  const { Id: id, Name: name, Created: created, Config: config, NetworkSettings: settings } = found;
  const texts = readLabels(isMapping(config) ? config["Labels"] : undefined);
  const required = {
    clusterId: parseClusterId(texts.clusterId),
    creationId: parseCreationId(texts.creationId),
    role: parseRole(texts.role),
    index: parseIndex(texts.index),
  };
  const reach = (["direct", "published"] as const).find((one) => one === texts.reach);
  const known = complete({ kind: "label", names: labelNames, texts }, required, { reach });
  if (typeof known === "string") return known;
  if (typeof id !== "string" || !/^[0-9a-f]{64}$/.test(id)) return "its id is malformed";
  if (nameOf(name) !== containerName(known.clusterId, known)) return "its name does not match the node in its labels";
  const network = networkName(known);
  const connected = mappingAt(mappingAt(settings, "Networks"), network);
  if (connected === undefined || !networkNames.has(network))
    return "it is not in the network of the cluster in its labels";
  return {
    id,
    ...known,
    reach: reach ?? "direct",
    imageId: typeof found["Image"] === "string" ? found["Image"] : "",
    volumes: readVolumes(found["Mounts"]),
    createdAt: parseMoment(created),
    ...readState(found["State"]),
    address: parseIpv4(connected["IPAddress"]),
    ports: readPorts(mappingAt(settings, "Ports")),
  };
}

function readState(state: unknown): Pick<NodeContainer, "status" | "exitCode" | "wasKilledForMemory" | "error"> {
  const { Status, ExitCode, OOMKilled, Error: error } = isMapping(state) ? state : {};
  return {
    status: typeof Status === "string" ? Status : "",
    exitCode: typeof ExitCode === "number" ? ExitCode : 0,
    wasKilledForMemory: OOMKilled === true,
    error: plainLine(error) || undefined,
  };
}

/** Only plain names and absolute paths, because they become words of a command. */
function readVolumes(mounts: unknown): readonly NodeVolume[] {
  const own = (Array.isArray(mounts) ? mounts : []).filter((mount) => isMapping(mount) && mount["Type"] === "volume");
  return own.flatMap(({ Name: name, Destination: path }) => {
    if (typeof name !== "string" || !/^[a-zA-Z0-9][\w.-]*$/.test(name)) return [];
    return typeof path === "string" && /^\/[^:]+$/.test(path) ? [{ name, path }] : [];
  });
}

/** Reads ports such as `{ "22/tcp": [{ "HostPort": "32768" }] }`. */
function readPorts(ports: Readonly<Record<string, unknown>> | undefined): ReadonlyMap<number, number> {
  const pairs = Object.entries(ports ?? {}).flatMap(([name, bindings]): [number, number][] => {
    const inside = parsePort(/^(\d+)\/tcp$/.exec(name)?.[1]);
    const binding: unknown = Array.isArray(bindings) ? bindings[0] : undefined;
    const outside = isMapping(binding) ? parsePort(binding["HostPort"]) : undefined;
    return inside === undefined || outside === undefined ? [] : [[inside, outside]];
  });
  return new Map(pairs);
}

function mappingAt(found: unknown, key: string): Readonly<Record<string, unknown>> | undefined {
  const value = isMapping(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  return isMapping(value) ? value : undefined;
}

/** Selects everything of ours, or the things of one cluster id or of one creation. */
export type Selection = "all" | { readonly clusterId: string } | { readonly creationId: string };

/**
 * Returns the engine's descriptions of things with our labels, including stopped containers. readContainers decides
 * which of them are ours.
 */
export async function describe(engine: Engine, selection: Selection, signal: AbortSignal): Promise<Described> {
  const [containers, networks] = await Promise.all([
    describeContainers(engine, selection, signal),
    describeNetworks(engine, selection, signal),
  ]);
  return { containers, networks };
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

/** Describes the things whose ids or names the command prints. */
export async function describeEach(
  engine: Engine,
  { words, kind }: { readonly words: readonly string[]; readonly kind: "container" | "network" | "image" | "volume" },
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const lines = (await engine.ask({ words }, signal)).split("\n").filter((name) => nameShape.test(name));
  // An image with two names is printed twice.
  return inspect(engine, { names: [...new Set(lines)], kind }, signal);
}

/** Describes the containers with these ids. The answer lacks those that are gone. */
export async function inspectContainers(
  engine: Engine,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  return inspect(engine, { names: ids, kind: "container" }, signal);
}

async function inspect(
  engine: Engine,
  { names, kind }: { readonly names: readonly string[]; readonly kind: string },
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  if (names.length === 0) return [];
  // Something that was removed meanwhile is missing from the answer.
  const accepts = (stderr: string): boolean => means(stderr, "gone");
  const answer = await askJson(engine, { words: [kind, "inspect", ...names], accepts }, signal);
  return Array.isArray(answer) ? (answer as readonly unknown[]) : [];
}

export function filterWord(selection: Selection): string {
  if (selection === "all") return `--filter=label=${labelNames.clusterId}`;
  if ("clusterId" in selection) return `--filter=label=${labelNames.clusterId}=${selection.clusterId}`;
  return `--filter=label=${labelNames.creationId}=${selection.creationId}`;
}
