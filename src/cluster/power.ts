import type { Backend } from "../backend/contract.ts";
import type { Power } from "../backend/power.ts";
import { ClusterError, hasErrorId, messageOf, revised } from "../errors.ts";
import { optionName, runCommand } from "../references.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  type NodeState,
  nodeGroups,
  nodeReference,
} from "../model/cluster-record.ts";
import type { Course, NewEvent } from "../model/event.ts";
import { correctClock } from "../ssh/correct-clock.ts";
import { reseed } from "../ssh/reseed.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { mapConcurrently, withTasks } from "../system/concurrency.ts";
import { outside } from "../outside-text.ts";
import { poll, retry } from "../system/retry.ts";
import { type Work, passedMs } from "../system/runtime.ts";
import { withinLimit } from "../system/time-limit.ts";
import { ruleOf, waits } from "../system/waits.ts";
import { clusterKey, clusterMasterConnection, openConnections } from "./connections.ts";
import { recordNodes, recording } from "./events/record-event.ts";
import { assertRuns, findCluster, findNodes, withCluster } from "./find-cluster.ts";
import { rebootNodes } from "./reboot-nodes.ts";

export type PowerAction = "stop" | "start" | "restart" | "pause" | "resume";

export interface PowerRequest {
  readonly clusterId: string;
  readonly action: PowerAction;
  /** See `findNodes`. */
  readonly nodes: readonly string[];
  /** Stops like a power cut. */
  readonly isForced: boolean;
}

const closedAtOnce = 16;

/**
 * Stops, starts, pauses or continues nodes, and resolves once started nodes accept logins, if this
 * machine has the cluster's key. Nodes that are in the wanted state already stay as they are. Safe
 * to repeat after an abort.
 */
export async function changePower(work: Work, backend: Backend<unknown>, request: PowerRequest) {
  const power = backend.local?.power;
  if (power === undefined) return await restartFromWithin(work, backend, request);
  const change = async (cluster: ClusterRecord) =>
    changeNodes(work, { backend, power, cluster }, request);
  return await withCluster(backend, request.clusterId, change, work.signal);
}

async function restartFromWithin(
  work: Work,
  backend: Backend<unknown>,
  { clusterId, action, nodes: selectors, isForced }: PowerRequest,
) {
  if (action !== "restart" || isForced)
    throw new ClusterError(
      "bad-usage",
      `Nodes of clusters of this kind (${backend.name}) can only be restarted, without ${optionName("force")}.`,
    );
  const cluster = await findCluster(backend, clusterId, work.signal);
  const chosen = findNodes(cluster, selectors);
  const watched = { ...cluster, nodes: chosen };
  const eventOf = (course: Course): NewEvent => ({
    kind: "power",
    action: "Restart",
    nodes: chosen.map(nodeReference),
    course,
  });
  const reboot = async (inner: Work) => {
    await markNodes(inner, cluster, { nodes: chosen, text: "Restart" });
    await recording(cluster.directory, eventOf, work, async () =>
      rebootNodes(inner, cluster, chosen),
    );
  };
  // The cloud's answers may omit machines that run.
  const { limitMs: unlistedMs } = waits.visibility;
  await whileNodesRun(work, { backend, cluster: watched, unlistedMs }, reboot);
  await closeLogins(work, cluster, chosen);
  return { cluster, hasBooted: true };
}

interface Powered {
  readonly backend: Backend<unknown>;
  readonly power: Power;
  readonly cluster: ClusterRecord;
}

async function changeNodes(
  work: Work,
  { backend, power, cluster }: Powered,
  { action, nodes: selectors, isForced }: PowerRequest,
) {
  const chosen = findNodes(cluster, selectors);
  if (action === "pause" || action === "resume") assertNoneIsOff(cluster, selectors);
  const ids = new Set(chosen.map(({ id }) => id));
  // Whether a node was started or restarted, so that its software starts too.
  let hasBooted = false;
  for (const { title, states, change } of changesOf(power, action, isForced)) {
    const before = await findCluster(backend, cluster.id, work.signal);
    const nodes = before.nodes.filter(({ id, state }) => ids.has(id) && states.includes(state));
    if (nodes.length === 0) continue;
    const names = nodes.map(nodeReference);
    using step = work.progress.start(title, names.join(", "));
    const eventOf = (course: Course): NewEvent => ({
      kind: "power",
      action: title,
      nodes: names,
      course,
    });
    if (states.includes("running")) await markNodes(work, before, { nodes, text: title });
    await recording(cluster.directory, eventOf, work, async () =>
      change(before, nodes, work.signal),
    );
    step.done();
    hasBooted ||= change === power.start;
  }
  const after = await findCluster(backend, cluster.id, work.signal);
  const changed = after.nodes.filter(({ id }) => ids.has(id));
  recordNodes(cluster.directory, changed, work);
  // A stopped node may have no address.
  await closeLogins(work, cluster, [...chosen, ...changed]);
  const booting = changed.filter(({ state }) => state === "running");
  if (action !== "stop" && action !== "pause" && booting.length > 0) {
    const watched = { ...after, nodes: booting };
    const logins = { setsClocks: power.stopsClocks, reseeds: false, areBooting: true, power };
    await whileNodesRun(work, { backend, cluster: watched, unlistedMs: 0 }, async (inner) =>
      awaitLogins(inner, watched, logins),
    );
  }
  return { cluster: after, hasBooted };
}

const marksAtOnce = 32;
const markLimitMs = 5_000;

/**
 * Leaves a line in the journals of running nodes, so that a platform's own logs show what was done
 * to it. Nodes that don't answer soon get none.
 */
async function markNodes(
  work: Work,
  cluster: ClusterRecord,
  { nodes, text }: { readonly nodes: readonly NodeRecord[]; readonly text: string },
): Promise<void> {
  const running = nodes.filter(({ state }) => state === "running");
  if (running.length === 0 || !(await clusterKey(cluster)).isHere) return;
  await using connections = openConnections(cluster.directory, work);
  const mark = async (node: NodeRecord, inner: AbortSignal): Promise<void> => {
    // Without a journal that reads, `logger` waits for ever, also after its login has ended.
    const argv = ["timeout", String(markLimitMs / 1000), "logger", "-t", "cluster-e2e", "--", text];
    await (
      await connections.connect(node, inner)
    )
      .run({ argv, limitMs: markLimitMs }, inner)
      .catch(() => {});
  };
  const markAll = async (inner: AbortSignal): Promise<void> =>
    void (await mapConcurrently(
      running,
      marksAtOnce,
      async (node) => mark(node, inner).catch(() => {}),
      inner,
    ));
  await withinLimit(markLimitMs, markAll, () => {}, work.signal);
}

/** Throws `node-stopped` for a node that can be neither paused nor running. In a group, such nodes stay as they are. */
function assertNoneIsOff(cluster: ClusterRecord, selectors: readonly string[]): void {
  const names = selectors.filter((each) => !Object.hasOwn(nodeGroups, each));
  for (const node of findNodes(cluster, names))
    if (node.state === "stopped") assertRuns(cluster, node);
}

/** A change of all nodes that are in one of these states. */
interface PowerChange {
  readonly title: string;
  readonly states: readonly NodeState[];
  readonly change: Power["start"];
}

function changesOf(power: Power, action: PowerAction, isForced: boolean): readonly PowerChange[] {
  const start: PowerChange = { title: "Start", states: ["stopped"], change: power.start };
  const resume: PowerChange = { title: "Resume", states: ["paused"], change: power.resume };
  const pause: PowerChange = { title: "Pause", states: ["running"], change: power.pause };
  const shutDown: PowerChange = { title: "Shut down", states: ["running"], change: power.shutDown };
  const cutPower: PowerChange = {
    title: "Cut the power",
    states: ["running", "paused"],
    change: power.cutPower,
  };
  // A paused system can't shut down.
  const stop = isForced ? [cutPower] : [resume, shutDown];
  return {
    stop,
    start: [start, resume],
    restart: [...stop, start],
    pause: [pause],
    resume: [resume],
  }[action];
}

/**
 * Closes idle ssh connections to these nodes, which are dead or would hang. Connections to other
 * nodes may be in use.
 */
async function closeLogins(
  { environment, signal }: Work,
  cluster: ClusterRecord,
  nodes: readonly NodeRecord[],
): Promise<void> {
  const close = async (node: NodeRecord): Promise<void> =>
    (await clusterMasterConnection(cluster, node, environment))?.close();
  await mapConcurrently(nodes, closedAtOnce, close, signal);
}

interface Watched {
  readonly backend: Backend<unknown>;
  /** The cluster with only the nodes to watch. */
  readonly cluster: ClusterRecord;
  /** For how long the backend may not list the cluster. */
  readonly unlistedMs: number;
}

/**
 * Runs the task while all these nodes run. As soon as one of them is off or gone, throws
 * `node-stopped`, `machine-failed` or `cluster-not-found`. Other failures of the backend don't
 * interrupt the task, and the backend may not list the cluster for a while.
 */
async function whileNodesRun(
  work: Work,
  { backend, cluster: { id, nodes }, unlistedMs }: Watched,
  task: (work: Work) => Promise<void>,
): Promise<void> {
  const { clock, progress } = work;
  const unlisted: { sinceMs: number | undefined } = { sinceMs: undefined };
  const look = async (signal: AbortSignal): Promise<undefined> => {
    const listed = await backend.find(id, signal);
    unlisted.sinceMs = listed === undefined ? (unlisted.sinceMs ?? passedMs(clock)) : undefined;
    if (unlisted.sinceMs !== undefined && passedMs(clock) - unlisted.sinceMs < unlistedMs) return;
    const now = listed ?? (await findCluster(backend, id, signal));
    for (const node of now.nodes)
      if (nodes.some((each) => each.id === node.id)) assertStillRuns(now, node);
  };
  const waitingFor = (): string =>
    unlisted.sinceMs === undefined ? "" : `${backend.name} to list cluster "${id}" again`;
  const rule = { ...ruleOf(waits.booting, clock), shows: { progress, waitingFor } };
  const tolerates = (error: unknown): boolean =>
    !(["node-stopped", "machine-failed", "cluster-not-found"] as const).some((each) =>
      hasErrorId(error, each),
    );
  await withTasks(work, async (tasks) => {
    tasks.start(async ({ signal }) => poll<undefined>(look, { ...rule, tolerates }, signal));
    await task(tasks.work);
  });
}

function assertStillRuns(cluster: ClusterRecord, node: NodeRecord): void {
  assertRuns(cluster, node);
  if (node.state !== "ending" && node.state !== "ended") return;
  const name = nodeReference(node);
  const why = node.stateReason === undefined ? "" : `: ${outside(node.stateReason)}`;
  throw new ClusterError(
    "machine-failed",
    `${name} of cluster "${cluster.id}" has ended instead of starting again${why}.`,
    {
      hint: `${runCommand("logs")} to see its console.`,
      facts: { cluster: cluster.id, node: name },
    },
  );
}

const loginsAtOnce = 20;

/**
 * Resolves when all these nodes accept logins. If this machine lacks the cluster's key, prints a
 * note and doesn't wait.
 */
export async function awaitLogins(
  work: Work,
  cluster: ClusterRecord,
  logins: Pick<Login, "setsClocks" | "reseeds" | "areBooting" | "power">,
): Promise<void> {
  if (!(await clusterKey(cluster)).isHere) {
    work.progress.note(
      "This computer doesn't have the cluster's key, so it does not wait for logins to the nodes.",
    );
    return;
  }
  using step = work.progress.start("Log in to the nodes");
  await using connections = openConnections(cluster.directory, work);
  await mapConcurrently(
    cluster.nodes,
    loginsAtOnce,
    async (node) => awaitLogin(work, { ...logins, cluster, node, connections }),
    work.signal,
  );
  step.done();
}

interface Login {
  readonly cluster: ClusterRecord;
  readonly node: NodeRecord;
  readonly connections: ConnectionPool;
  /** Whether the nodes' clocks must be set, because they have stood still. */
  readonly setsClocks: boolean;
  /**
   * Whether the nodes continue from saved memory, and would repeat the random numbers of whatever
   * else continues from it.
   */
  readonly reseeds: boolean;
  /** Whether the nodes may refuse logins for a while. */
  readonly areBooting: boolean;
  readonly power: Pick<Power, "assertBoots"> | undefined;
}

async function awaitLogin(
  work: Work,
  { cluster, node, connections, setsClocks, reseeds, areBooting, power }: Login,
): Promise<void> {
  const last = { message: "" };
  const logIn = async (): Promise<void> => {
    const connection = await connections
      .connect(node, work.signal)
      .catch(async (error: unknown) => {
        work.signal.throwIfAborted();
        last.message = messageOf(error);
        await power?.assertBoots?.(cluster, node);
        throw areBooting ? asTransient(error) : error;
      });
    if (reseeds) await reseed(connection, nodeReference(node), work.signal);
    if (setsClocks) await correctClock(work, connection, nodeReference(node));
  };
  const rule = { ...ruleOf(waits.continuedLogin, work.clock), seen: () => last.message };
  await retry(logIn, rule, work.signal);
}

function asTransient(error: unknown): unknown {
  if (!hasErrorId(error, "connection-failed") || error.transient) return error;
  return revised(error, { transient: true });
}
