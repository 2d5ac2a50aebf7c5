import { ClusterError } from "../../errors.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  isReachable,
  nodeReference,
} from "../../model/cluster-record.ts";
import type { FaultKind, FaultPart, FaultRecord } from "../../platform/faults/node-faults.ts";
import { assertRuns, findNodes } from "../find-cluster.ts";

/** A fault to begin. Nodes are named as everywhere: `agent_0`, an address, a machine id, or `all`, `masters`, `agents`, `public_agents`. */
export interface FaultRequest {
  /**
   * `partition`: packets from one side don't arrive at the other. `network`: what nodes send arrives late, or not at all. `clock`: clocks are wrong; not
   * on containers. `disk`: the file system of a folder is full, which must be a tmpfs on containers.
   */
  readonly kind: FaultKind;
  /** After this time, the nodes heal the fault themselves. */
  readonly durationMs: number;
  /** The nodes that have the fault; not for `partition`. */
  readonly nodes?: readonly string[];
  /** `partition`: one side. */
  readonly between?: readonly string[];
  /** `partition`: the other side; default: all other nodes. Nodes that are also in `between` count there only. */
  readonly and?: readonly string[];
  /** `partition`: whether only packets from `between` to `and` are dropped; default: false. */
  readonly oneWay?: boolean;
  /** `network`: one of these three at least. */
  readonly delayMs?: number | undefined;
  readonly lossPercent?: number | undefined;
  readonly rateKbits?: number | undefined;
  /** `clock`: negative if the clock goes back. */
  readonly offsetMs?: number | undefined;
  /** `disk`: a folder of the file system. */
  readonly folder?: string | undefined;
  /** `disk`: how much stays free; default: 0. */
  readonly leaveBytes?: number | undefined;
}

const hourMs = 60 * 60_000;

interface Property {
  readonly kind: FaultKind;
  readonly isAllowed: (value: never) => boolean;
  /** Continues "must be …". */
  readonly expected: string;
}

const within = (
  kind: FaultKind,
  [least, most]: readonly [number, number],
  expected: string,
): Property => ({
  kind,
  isAllowed: (value: number) => value >= least && value <= most,
  expected,
});

const ownProperties = {
  between: { kind: "partition", isAllowed: () => true, expected: "" },
  and: { kind: "partition", isAllowed: () => true, expected: "" },
  oneWay: { kind: "partition", isAllowed: () => true, expected: "" },
  delayMs: within("network", [1, 60_000], "from 1 ms to 60 s"),
  lossPercent: within("network", [0.01, 100], "from 0.01 to 100 percent"),
  rateKbits: within("network", [1, 100_000_000], "from 1 kbit to 100 gbit per second"),
  offsetMs: {
    kind: "clock",
    isAllowed: (value: number) => Math.abs(value) >= 1000 && Math.abs(value) <= 20 * 24 * hourMs,
    expected: "from 1 s to 20 days, ahead or behind",
  },
  // The path also becomes a line of tmpfiles.d, which has characters of its own.
  folder: {
    kind: "disk",
    isAllowed: (value: string) => /^\/[\w./+@:,-]{0,200}$/.test(value),
    expected: "an absolute path of letters, digits and . / _ + @ : , -",
  },
  leaveBytes: within("disk", [0, 2 ** 50], "from 0 to 2^50 bytes"),
} as const satisfies Partial<Record<keyof FaultRequest, Property>>;

/** Each kind of fault requires at least one of these properties. */
const needed: Readonly<Record<FaultKind, readonly (keyof FaultRequest)[]>> = {
  partition: ["between"],
  network: ["delayMs", "lossPercent", "rateKbits"],
  clock: ["offsetMs"],
  disk: ["folder"],
};

/** Returns all problems with a request. Empty lists, and `oneWay: false`, count as absent. */
export function faultProblems(request: FaultRequest): readonly string[] {
  const { kind, nodes = [], durationMs } = request;
  const isGiven = (name: keyof FaultRequest): boolean => {
    const value = request[name];
    return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
  };
  const own = Object.entries<Property>(ownProperties).flatMap(
    ([name, { kind: owner, isAllowed, expected }]) => {
      if (!isGiven(name as keyof FaultRequest)) return [];
      if (owner !== kind) return [`\`${name}\`: only for ${owner}`];
      return isAllowed(request[name as keyof FaultRequest] as never)
        ? []
        : [`\`${name}\`: must be ${expected}`];
    },
  );
  const lacks = !needed[kind].some(isGiven);
  const takesNodes = kind !== "partition";
  return [
    ...own,
    ...(lacks
      ? [`${needed[kind].map((name) => `\`${name}\``).join(" or ")}: required by ${kind}`]
      : []),
    ...(takesNodes && nodes.length === 0 ? [`${kind}: name the nodes`] : []),
    ...(!takesNodes && nodes.length > 0 ? ["partition: name its two sides, no other nodes"] : []),
    ...(durationMs >= 1000 && durationMs <= 24 * hourMs
      ? []
      : ["`durationMs`: must be from 1 s to 24 h"]),
  ];
}

export interface PlannedPart {
  readonly node: NodeRecord;
  readonly part: FaultPart;
  readonly record: FaultRecord;
}

/**
 * Returns what each node does in this fault. Throws `bad-usage`, `node-not-found`, `node-stopped`, and `machine-failed`
 * for a node that does not run yet.
 */
export function planFault(cluster: ClusterRecord, request: FaultRequest): readonly PlannedPart[] {
  const {
    kind,
    nodes = [],
    delayMs,
    lossPercent,
    rateKbits,
    offsetMs = 0,
    folder = "",
    leaveBytes = 0,
  } = request;
  if (kind === "partition") return planPartition(cluster, request);
  const isContainer = cluster.backend === "container";
  const chosen = running(cluster, nodes);
  const plan = (effect: string, partOf: (node: NodeRecord) => FaultPart): readonly PlannedPart[] =>
    chosen.map((node) => ({
      node,
      part: partOf(node),
      record: {
        kind,
        description: `${effect} on ${listed(chosen)}`,
        links: kind === "network" ? linksFrom(node, cluster.nodes.filter(isReachable)) : [],
        folder,
      },
    }));
  switch (kind) {
    case "network": {
      const netem = [
        ...(delayMs === undefined ? [] : ["delay", `${delayMs}ms`]),
        ...(lossPercent === undefined ? [] : ["loss", `${lossPercent}%`]),
        ...(rateKbits === undefined ? [] : ["rate", `${rateKbits}kbit`]),
      ];
      return plan(netem.join(" "), (node) => ({ kind, address: privateAddressOf(node), netem }));
    }
    case "clock": {
      if (isContainer) {
        throw new ClusterError(
          "bad-usage",
          "Containers have this computer's clock: it cannot be wrong on one of them.",
          {
            hint: "Use virtual machines or the cloud.",
          },
        );
      }
      const offsetSeconds = Math.round(offsetMs / 1000);
      return plan(`clock ${offsetMs < 0 ? "" : "+"}${offsetSeconds} s`, () => ({
        kind,
        offsetSeconds,
      }));
    }
    case "disk":
      return plan(`${folder} filled, ${leaveBytes} bytes left,`, () => ({
        kind,
        folder,
        leaveBytes,
        sharers: isContainer ? chosen.length : 0,
      }));
  }
}

function planPartition(
  cluster: ClusterRecord,
  { between = [], and = [], oneWay = false }: FaultRequest,
) {
  const first = running(cluster, between);
  const named = and.length === 0 ? cluster.nodes.filter(isReachable) : running(cluster, and);
  const second = named.filter((node) => !first.includes(node));
  if (second.length === 0)
    throw new ClusterError(
      "bad-usage",
      `There is no other node to separate from ${listed(first)}.`,
    );
  const description = oneWay
    ? `nothing from ${listed(first)} arrives at ${listed(second)}`
    : `partition between ${listed(first)} and ${listed(second)}`;
  const dropping = (node: NodeRecord, from: readonly NodeRecord[]): PlannedPart => ({
    node,
    part: { kind: "partition", sources: from.map(privateAddressOf) },
    record: { kind: "partition", description, links: linksFrom(node, from), folder: "" },
  });
  return [
    ...second.map((node) => dropping(node, first)),
    ...(oneWay ? [] : first.map((node) => dropping(node, second))),
  ];
}

/** How many other nodes each node connects to, to show that a fault is there. */
const mostLinks = 5;

/** Returns the addresses that a node pings. They differ from node to node, so that together the nodes try all. */
function linksFrom(node: NodeRecord, to: readonly NodeRecord[]): readonly string[] {
  const others = to.flatMap((each) => (each === node ? [] : (each.privateAddress ?? [])));
  const begin = node.index % Math.max(1, others.length);
  return [...others.slice(begin), ...others.slice(0, begin)].slice(0, mostLinks);
}

function running(cluster: ClusterRecord, selectors: readonly string[]): readonly NodeRecord[] {
  const nodes = findNodes(cluster, selectors);
  for (const node of nodes) assertRuns(cluster, node);
  const absent = nodes.filter((node) => !isReachable(node));
  if (absent.length === 0) return nodes;
  throw new ClusterError("machine-failed", `These nodes do not run: ${listed(absent)}.`, {
    hint: "Run the inspect command to see the nodes.",
    facts: { nodes: absent.map(nodeReference) },
  });
}

function privateAddressOf(node: NodeRecord): string {
  if (node.privateAddress !== undefined) return node.privateAddress;
  throw new ClusterError("machine-failed", `${nodeReference(node)} has no private address.`);
}

const mostListed = 5;

function listed(nodes: readonly NodeRecord[]): string {
  const names = nodes.slice(0, mostListed).map(nodeReference).join(", ");
  return nodes.length > mostListed ? `${names} and ${nodes.length - mostListed} more` : names;
}
