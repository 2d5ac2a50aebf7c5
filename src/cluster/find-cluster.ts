import { isIPv4 } from "node:net";
import { join } from "node:path";
import type { Backend, BackendScope, OtherScopes } from "../backend/contract.ts";
import { ClusterError, hasErrorId } from "../errors.ts";
import { commandName, optionName, runCommand } from "../references.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  type Role,
  nodeGroups,
  nodeHostname,
  nodeReference,
  roles,
} from "../model/cluster-record.ts";
import { outside } from "../outside-text.ts";
import { assertOwnFolder } from "../store/creation-folder.ts";
import { findLastRecord } from "../store/last-record.ts";
import { stateFolder } from "../store/state-folder.ts";
import type { Runtime } from "../system/runtime.ts";

const byRole = new RegExp(
  `^(?:${roles.join("|").replaceAll("_", "[-_]")})[-_](?:0|[1-9][0-9]{0,3})$`,
);

/**
 * Finds the cluster with this id. If there is none, removes what is left of clusters whose time is
 * over, and throws `cluster-not-found`, which names the other scopes that have one or could not be
 * queried. Throws `machine-not-set-up` if the cluster's folder on this machine is a link to another
 * folder.
 */
export async function findCluster(
  backend: Pick<Backend<never>, "find" | "scope" | "local">,
  clusterId: string,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const cluster = await backend.find(clusterId, signal);
  if (cluster !== undefined) {
    await assertOwnFolder(cluster.directory);
    return cluster;
  }
  const { scope } = backend;
  await backend.local?.removeExpired(signal);
  const others = (await scope?.findElsewhere(clusterId, signal)) ?? { scopes: [], unreachable: [] };
  const here = scope === undefined ? "" : ` in ${scope.kind} ${scope.name}`;
  throw new ClusterError("cluster-not-found", `There is no cluster "${clusterId}"${here}.`, {
    hint: byRole.test(clusterId)
      ? `That is the name of a node. Pass the cluster's id with ${optionName("clusterId")}, and the node with ${optionName("node")} where the command has it.`
      : hintFor(scope, others),
    facts: {
      cluster: clusterId,
      ...(scope && { [scope.kind]: scope.name }),
      elsewhere: others.scopes,
      ...(others.unreachable.length > 0 && {
        silent: others.unreachable.map((each) => ({ place: each.scope, reason: each.reason })),
      }),
    },
  });
}

/** What was last known of the cluster. Only a backend with several scopes asks a service elsewhere. */
export async function lastRecord(
  { name, scope }: Pick<Backend<never>, "name" | "scope">,
  clusterId: string,
  { environment, clock }: Pick<Runtime, "environment" | "clock">,
): Promise<ClusterRecord | undefined> {
  if (scope === undefined) return undefined;
  const root = join(stateFolder(environment), name, scope.name);
  return findLastRecord(root, clusterId, clock.now());
}

/**
 * Finds the cluster and works on it. Throws `cluster-not-found` also if the work fails and the
 * cluster is gone by then, which explains the failure.
 */
export async function withCluster<Result>(
  backend: Backend<unknown>,
  clusterId: string,
  work: (cluster: ClusterRecord) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const cluster = await findCluster(backend, clusterId, signal);
  try {
    return await work(cluster);
  } catch (error) {
    await findCluster(backend, clusterId, signal).catch((problem: unknown) => {
      if (hasErrorId(problem, "cluster-not-found")) throw problem;
    });
    throw error;
  }
}

function hintFor(
  scope: BackendScope | undefined,
  { scopes, unreachable, notes = [] }: OtherScopes,
): string {
  if (scope !== undefined && scopes.length > 0) {
    const options = scopes.map((name) => optionName(scope.option, name));
    return `There is one in ${scopes.join(", ")}: add ${options.join(" or ")}.`;
  }
  const unasked = [...Map.groupBy(unreachable, ({ reason }) => reason)].map(
    ([reason, places]) =>
      `It may be in ${places.map((each) => each.scope).join(" or ")}, whose clusters cannot be listed: ${reason}`,
  );
  return [
    ...notes,
    ...unasked,
    `${runCommand("list")} to see all clusters, or ${commandName("doctor")} to see what is left of others.`,
  ].join(" ");
}

/**
 * Returns what is wrong with a text that should name a node or a group of nodes, such as `agents`.
 * It doesn't check whether such a node exists. `machineId` is the format of the backend's own
 * machine ids.
 */
export function nodeSelectorProblem(text: string, machineId: RegExp): string | undefined {
  if (Object.hasOwn(nodeGroups, text) || byRole.test(text) || isIPv4(text) || machineId.test(text))
    return undefined;
  const advice = text.includes(",") ? "; name several nodes one by one, without commas" : "";
  return `"${text}" is not a node: use an IPv4 address, a machine id, or a name such as master_0, agent_0 or public_agent_0${advice}`;
}

/**
 * Finds the nodes with these names: groups (`all`, `masters`, `agents`, `public_agents`) or what `findNode` accepts.
 * Each node occurs once, in the record's order. Nodes that do not run, and have no address, are among them; those that
 * have ended are not. Throws `node-not-found`, also for an empty group.
 */
export function findNodes(
  cluster: ClusterRecord,
  selectors: readonly string[],
): readonly NodeRecord[] {
  const found = new Set(selectors.flatMap((selector) => nodesNamed(cluster, selector)));
  return cluster.nodes.filter((node) => found.has(node));
}

export const nodeNamesOf = (cluster: ClusterRecord): readonly string[] =>
  membersOf(cluster).map(nodeReference);

/** The groups that have nodes. */
const groupsOf = (cluster: ClusterRecord): readonly string[] =>
  Object.entries(nodeGroups).flatMap(([name, role]) =>
    membersOf(cluster, role).length > 0 ? [name] : [],
  );

const membersOf = ({ nodes }: ClusterRecord, role?: Role): readonly NodeRecord[] =>
  nodes.filter((node) => node.state !== "ended" && node.role === (role ?? node.role));

/**
 * Warns of nodes of these groups that the cluster was created with and no longer has: work on a
 * group leaves them out.
 */
export function warnOfGoneNodes(
  cluster: ClusterRecord,
  selectors: readonly string[],
  { progress }: Pick<Runtime, "progress">,
): void {
  const here = new Set(nodeNamesOf(cluster));
  const groups = selectors.filter((selector) => Object.hasOwn(nodeGroups, selector));
  const wanted = new Set(groups.flatMap((group) => nodeGroups[group] ?? roles));
  const gone = [...wanted].flatMap((role) =>
    Array.from({ length: cluster.requested?.[role] ?? 0 }, (_, index) =>
      nodeReference({ role, index }),
    ).filter((name) => !here.has(name)),
  );
  if (gone.length > 0)
    progress.warn(`left out, because no machine of that name is left: ${gone.join(", ")}`);
}

function nodesNamed(cluster: ClusterRecord, selector: string): readonly NodeRecord[] {
  if (!Object.hasOwn(nodeGroups, selector)) return [existingNode(cluster, selector)];
  const members = membersOf(cluster, nodeGroups[selector]);
  if (members.length === 0)
    throw nodeNotFound(cluster, selector, `no node in the group "${selector}"`);
  return members;
}

/**
 * Finds a node by public address, private address, machine id or `<role>_<number>`. Throws
 * `node-not-found`, also if the node has no address at which it could be reached: `ssh` would take
 * its name for a host's.
 */
export function findNode(cluster: ClusterRecord, reference: string): NodeRecord {
  if (Object.hasOwn(nodeGroups, reference))
    throw nodeNotFound(cluster, reference, `a group "${reference}", but this takes one node`);
  const node = existingNode(cluster, reference);
  assertRuns(cluster, node);
  if (node.ssh.host !== "") return node;
  throw new ClusterError(
    "node-not-found",
    `Node "${reference}" of cluster "${cluster.id}" has no address.`,
    {
      hint: `The node is still starting, or has lost its network. ${runCommand("inspect")} to see the nodes' addresses.`,
      facts: { cluster: cluster.id, node: reference },
    },
  );
}

export const noRunningMaster = ({ id }: ClusterRecord, purpose = "", advice = ""): ClusterError =>
  new ClusterError("node-not-found", `Cluster "${id}" has no running master${purpose}.`, {
    hint: `${runCommand("inspect")} to see its nodes${advice}.`,
    facts: { cluster: id },
  });

/** Throws `node-stopped`. */
export function assertRuns(cluster: Pick<ClusterRecord, "id">, node: NodeRecord): void {
  if (node.state !== "stopped" && node.state !== "paused") return;
  const name = nodeReference(node);
  const why = node.stateReason === undefined ? "" : ` (${outside(node.stateReason)})`;
  const [advice, action] =
    node.state === "stopped" ? ["Start it", "start"] : ["Let it continue", "resume"];
  throw new ClusterError(
    "node-stopped",
    `${name} of cluster "${cluster.id}" is ${node.state}${why}.`,
    {
      hint: `${advice}: ${runCommand(`node ${action} ${name}`, "run")}`,
      facts: { cluster: cluster.id, node: name, state: node.state },
    },
  );
}

/** Throws `node-stopped`, or `node-not-found` with the option that chooses another node. */
export function runningMasters(
  cluster: ClusterRecord,
  option = "node",
): readonly [NodeRecord, ...NodeRecord[]] {
  const [first, ...others] = cluster.nodes.filter(
    (node) => node.role === "master" && node.state === "running",
  );
  if (first !== undefined) return [first, ...others];
  for (const node of cluster.nodes) if (node.role === "master") assertRuns(cluster, node);
  throw noRunningMaster(cluster, "", `, and choose one with ${optionName(option)}`);
}

function existingNode(cluster: ClusterRecord, reference: string): NodeRecord {
  const node = cluster.nodes.find((candidate) => namesOf(candidate).includes(reference));
  if (node !== undefined && node.state !== "ended") return node;
  const why =
    node?.stateReason === undefined ? "" : ` (it has terminated: ${outside(node.stateReason)})`;
  throw nodeNotFound(cluster, reference, `no node "${reference}"${why}`);
}

function nodeNotFound(cluster: ClusterRecord, reference: string, lacks: string): ClusterError {
  const existing = nodeNamesOf(cluster);
  return new ClusterError("node-not-found", `Cluster "${cluster.id}" has ${lacks}.`, {
    hint:
      existing.length === 0
        ? "The cluster has no nodes."
        : `The cluster's nodes are ${existing.join(", ")}; its groups are ${groupsOf(cluster).join(", ")}.`,
    facts: { cluster: cluster.id, node: reference, nodes: existing },
  });
}

/** As nodes' hostnames have hyphens, so may the names that users type. */
function namesOf(node: NodeRecord): readonly (string | undefined)[] {
  const { id, publicAddress, privateAddress } = node;
  return [nodeReference(node), nodeHostname(node), id, publicAddress, privateAddress];
}
