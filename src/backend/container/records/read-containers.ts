import type { Counts, NodeRecord, Variant } from "../../../model/cluster-record.ts";
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
  toRemark,
} from "../../../model/parse-values.ts";
import { isMapping } from "../../../system/is-mapping.ts";
import { complete, shownId, type Stranger } from "../../stranger.ts";
import type { DescribedNetwork, Reach } from "../engine/engine-kind.ts";
import { labelNames, readLabels } from "./labels.ts";
import { containerName, networkName } from "./names.ts";

/** What the labels of a cluster's network say of the cluster. */
export interface NetworkFacts {
  readonly clusterId: string;
  readonly creationId: string;
  readonly counts: Counts | undefined;
  readonly variant: Variant | undefined;
  readonly distribution: string | undefined;
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
  /** As the engine calls it: `created`, `running`, `exited` … */
  readonly status: string;
  readonly exitCode: number;
  readonly wasKilledForMemory: boolean;
  readonly error: string | undefined;
  /** In the cluster's network; undefined while it has none. */
  readonly address: string | undefined;
  /** Ports of 127.0.0.1 by those of the node that they lead to. */
  readonly ports: ReadonlyMap<number, number>;
}

export interface ContainerReading {
  readonly networks: readonly ClusterNetwork[];
  readonly containers: readonly NodeContainer[];
  readonly strangers: readonly Stranger[];
}

/** What the engine tells of networks and containers with labels of ours. */
export interface Described {
  /** As `network inspect` has them, whatever the engine calls the parts. */
  readonly networks: readonly DescribedNetwork[];
  /** As `container inspect` has them. */
  readonly containers: readonly unknown[];
}

/**
 * Reads which of them are ours. An image can carry labels of ours into any container that is made of it, but it can neither name the container nor
 * put it into a network. So a container is a node where its labels have our shapes, its name is that node's, and it is in the cluster's
 * network, which itself has the cluster's labels and name.
 */
export function readContainers({ networks, containers }: Described): ContainerReading {
  const own = readEach("network", networks, readNetwork);
  const nodes = readNodes(containers, own.read);
  return { networks: own.read, containers: nodes.read, strangers: [...own.strangers, ...nodes.strangers] };
}

/** The same, where the clusters' networks are known. */
export function readNodes(containers: readonly unknown[], networks: readonly NetworkFacts[]): Reading<NodeContainer> {
  const names = new Set(networks.map(networkName));
  return readEach("container", containers, (found) => readContainer(found, names));
}

interface Reading<Read> {
  readonly read: readonly Read[];
  readonly strangers: readonly Stranger[];
}

function readEach<Found, Read extends object>(
  kind: string,
  found: readonly Found[],
  readOne: (one: Found) => Read | string,
): Reading<Read> {
  const results = found.map((one) => ({ one, result: readOne(one) }));
  return {
    read: results.map(({ result }) => result).filter((result) => typeof result !== "string"),
    strangers: results.flatMap(({ one, result }) =>
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

/** A network, or what is wrong with it. */
function readNetwork({ id, name, labels }: DescribedNetwork): ClusterNetwork | string {
  const texts = readLabels(labels);
  const required = { clusterId: parseClusterId(texts.clusterId), creationId: parseCreationId(texts.creationId) };
  const optional = {
    counts: parseCounts(texts.counts),
    variant: parseVariant(texts.variant),
    distribution: parseDistribution(texts.distribution),
  };
  const known = complete({ kind: "label", names: labelNames, texts }, required, optional);
  if (typeof known === "string") return known;
  if (typeof id !== "string" || !/^[0-9a-f]{64}$/.test(id)) return "its id has an unknown form";
  if (name !== networkName(known)) return "its name is not that of its cluster's network";
  return { id, ...known, ...optional };
}

/** A container, or what is wrong with it. */
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
  const reach =
    texts.reach === undefined ? "direct" : (["direct", "published"] as const).find((one) => one === texts.reach);
  const known = complete({ kind: "label", names: labelNames, texts }, required, { reach });
  if (typeof known === "string") return known;
  if (typeof id !== "string" || !/^[0-9a-f]{64}$/.test(id)) return "its id has an unknown form";
  if (nameOf(name) !== containerName(known.clusterId, known)) return "its name is not that of the node in its labels";
  const network = networkName(known);
  const connected = mappingAt(mappingAt(settings, "Networks"), network);
  if (connected === undefined || !networkNames.has(network))
    return "it is not in the network of the cluster in its labels";
  return {
    id,
    ...known,
    reach: reach ?? "direct",
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
    error: toRemark(error),
  };
}

/** `{ "22/tcp": [{ "HostPort": "32768" }] }` */
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
