import { ClusterError } from "../../errors.ts";
import { optionName, runCommand } from "../../references.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  isReachable,
  nodeReference,
} from "../../model/cluster-record.ts";
import type { FaultCluster, FaultOption, FaultPart } from "../../platform/faults/fault-kind.ts";
import {
  type FaultKind,
  type FaultRequest,
  commonOptions,
  faultKinds,
  faultRows,
} from "../../platform/faults/fault-kinds.ts";
import { listedNodes } from "../../platform/faults/fault-nodes.ts";
import type { FaultRecord } from "../../platform/faults/node-faults.ts";
import { assertRuns, findNodes } from "../find-cluster.ts";

const longestMs = 24 * 60 * 60_000;

/** Returns all problems with a request. Empty lists, and switches that are off, count as absent. */
export function faultProblems(request: FaultRequest): readonly string[] {
  const { kind, nodes = [], durationMs } = request;
  const row = faultRows[kind];
  const given: Readonly<Record<string, unknown>> = { ...request };
  const isGiven = (name: string): boolean => {
    const value = given[name];
    return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
  };
  const foreign = faultKinds.flatMap((owner) =>
    owner === kind
      ? []
      : Object.keys(faultRows[owner].options)
          .filter((name) => isGiven(name) && !Object.hasOwn(row.options, name))
          .map((name) => `${optionName(name)}: only for ${owner}`),
  );
  const own = Object.entries<FaultOption>({ ...row.options, ...commonOptions }).flatMap(
    ([name, option]) =>
      !isGiven(name) || option.isAllowed?.(given[name] as never) !== false
        ? []
        : [`${optionName(name)}: must be ${option.expected}`],
  );
  const lacks = row.needs.length > 0 && !row.needs.some(isGiven);
  return [
    ...foreign,
    ...own,
    ...(lacks
      ? [`${row.needs.map((name) => optionName(name)).join(" or ")}: required by ${kind}`]
      : []),
    ...(row.problems?.(request) ?? []),
    ...(isGiven("untilNodes") && !isGiven("until")
      ? [`${optionName("untilNodes")}: only with ${optionName("until")}`]
      : []),
    ...(row.takesNodes && nodes.length === 0 ? [`${kind}: name the nodes`] : []),
    ...(!row.takesNodes && nodes.length > 0
      ? [
          `${kind}: takes no nodes besides its sides; for a side of several nodes, repeat ${optionName("between")} or ${optionName("and")}`,
        ]
      : []),
    ...(durationMs >= 1000 && durationMs <= longestMs
      ? []
      : [`${optionName("durationMs")}: must be from 1 s to 24 h`]),
  ];
}

/** The library's name for an option, which the command line replaces by its flag. */

export interface PlannedPart extends Pick<FaultPart, "node" | "values" | "peers"> {
  readonly record: FaultRecord;
}

/**
 * Returns what each node does in this fault. Throws `bad-usage`, `node-not-found`, `node-stopped`, and `machine-failed`
 * for a node that does not run yet.
 */
export function planFault(cluster: ClusterRecord, request: FaultRequest): readonly PlannedPart[] {
  const { kind } = request;
  const row = faultRows[kind];
  const reachable = cluster.nodes.filter(isReachable);
  const within: FaultCluster = {
    isContainer: cluster.backend === "container",
    nodes: reachable,
    find: (selectors) => (selectors.length === 0 ? reachable : runningNodes(cluster, selectors)),
  };
  const { description, parts } = row.plan(request, within);
  assertPossible(cluster, kind);
  const where = row.takesNodes ? ` on ${listedNodes(parts.map(({ node }) => node))}` : "";
  return parts.map(({ node, values, peers, links = [], measure }) => ({
    node,
    values,
    peers,
    record: {
      kind,
      description: `${description}${where}`,
      links: linksFrom(node, links),
      ...(request.until !== undefined && { awaitsCheck: true }),
      ...(measure !== undefined && {
        measure: Object.fromEntries(
          Object.entries(measure).map(([name, value]) => [name, String(value)]),
        ),
      }),
    },
  }));
}

/** Throws `bad-usage` for a kind that no node of the cluster can have. */
export function assertPossible({ backend }: Pick<ClusterRecord, "backend">, kind: FaultKind): void {
  const { notInContainers } = faultRows[kind];
  if (backend !== "container" || notInContainers === undefined) return;
  throw new ClusterError("bad-usage", notInContainers, {
    hint: "Use virtual machines or the cloud.",
  });
}

/** How many other nodes each node connects to, to show that a fault is there. */
const mostLinks = 5;

/** Returns the addresses that a node pings. They differ from node to node, so that together the nodes try all. */
function linksFrom(node: NodeRecord, to: readonly NodeRecord[]): readonly string[] {
  const others = to.flatMap((each) => (each === node ? [] : (each.privateAddress ?? [])));
  const begin = node.index % Math.max(1, others.length);
  return [...others.slice(begin), ...others.slice(0, begin)].slice(0, mostLinks);
}

/** Finds nodes that must run. Throws as `planFault` does. */
export function runningNodes(
  cluster: ClusterRecord,
  selectors: readonly string[],
): readonly NodeRecord[] {
  const nodes = findNodes(cluster, selectors);
  for (const node of nodes) assertRuns(cluster, node);
  const absent = nodes.filter((node) => !isReachable(node));
  if (absent.length === 0) return nodes;
  throw new ClusterError("machine-failed", `These nodes do not run: ${listedNodes(absent)}.`, {
    hint: `${runCommand("inspect")} to see the nodes.`,
    facts: { nodes: absent.map(nodeReference) },
  });
}
