import type { Backend, Power } from "../backend/contract.ts";
import { ClusterError, hasErrorId } from "../errors.ts";
import { type ClusterRecord, type NodeRecord, type NodeState, nodeReference } from "../model/cluster-record.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { mapConcurrently, withTasks } from "../system/concurrency.ts";
import { outsideReason } from "../system/printable.ts";
import { poll, retry } from "../system/retry.ts";
import type { Clock, Runtime } from "../system/runtime.ts";
import { ruleOf, waits } from "../system/waits.ts";
import { clusterKey, clusterMasterConnection, openConnections } from "./connections.ts";
import { assertRuns, findCluster, findNodes } from "./find-cluster.ts";
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
 * Stops, starts, pauses or continues nodes, and resolves with the cluster once started nodes accept logins, if this machine has its key. Nodes that are in
 * the wanted state already stay as they are. Safe to repeat after an abort.
 */
export async function changePower(
  backend: Backend<unknown>,
  { clusterId, action, nodes: selectors, isForced }: PowerRequest,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const cluster = await findCluster(backend, clusterId, signal);
  const chosen = findNodes(cluster, selectors);
  if (backend.power === undefined && action === "restart" && !isForced) {
    await rebootNodes(cluster, chosen, runtime, signal);
    return cluster;
  }
  const power = powerOf(backend);
  const act = async (title: string, states: readonly NodeState[], work: Power["start"]): Promise<void> => {
    const before = await findCluster(backend, clusterId, signal);
    const ids = new Set(chosen.map(({ id }) => id));
    const nodes = before.nodes.filter(({ id, state }) => ids.has(id) && states.includes(state));
    if (nodes.length === 0) return;
    using step = runtime.progress.start(title, nodes.map(nodeReference).join(", "));
    await work(before, nodes, signal);
    step.done();
  };
  // A paused system can't shut down.
  const resume = async (): Promise<void> => act("Resume", ["paused"], power.resume);
  const stop = async (): Promise<void> => {
    if (isForced) return await act("Cut the power", ["running", "paused"], power.cutPower);
    await resume();
    await act("Shut down", ["running"], power.shutDown);
  };
  const start = async (): Promise<void> => act("Start", ["stopped"], power.start);
  const steps: Readonly<Record<PowerAction, readonly (() => Promise<void>)[]>> = {
    stop: [stop],
    start: [start, resume],
    restart: [stop, start],
    pause: [async () => act("Pause", ["running"], power.pause)],
    resume: [resume],
  };
  for (const step of steps[action]) await step();
  const after = await findCluster(backend, clusterId, signal);
  const ids = new Set(chosen.map(({ id }) => id));
  const changed = after.nodes.filter(({ id }) => ids.has(id));
  // Kept logins to these nodes are dead, or would hang. Those to other nodes may be in use. A stopped node may have no address.
  const close = async (node: NodeRecord): Promise<void> =>
    (await clusterMasterConnection(cluster, node, runtime.environment))?.close();
  await mapConcurrently([...chosen, ...changed], closedAtOnce, close, signal);
  const booting = changed.filter(({ state }) => state === "running");
  if (action !== "stop" && action !== "pause" && booting.length > 0) {
    await withTasks(async (tasks) => {
      tasks.start(async (inner) => watchStates(backend, { ...after, nodes: booting }, runtime.clock, inner));
      const logins = { setsClocks: power.stopsClocks, areBooting: true };
      await awaitLogins({ ...after, nodes: booting }, logins, runtime, tasks.signal);
    }, signal);
  }
  return after;
}

/** Throws `node-stopped` as soon as one of these nodes stops: nobody will log in to it. The signal ends the watch. */
async function watchStates(
  backend: Backend<unknown>,
  { id, nodes }: ClusterRecord,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const look = async (): Promise<undefined> => {
    const now = await findCluster(backend, id, signal);
    for (const node of now.nodes) if (nodes.some((each) => each.id === node.id)) assertRuns(now, node);
  };
  await poll<undefined>(look, ruleOf(waits.booting, clock), signal);
}

function powerOf({ name, power }: Backend<unknown>): Power {
  if (power !== undefined) return power;
  throw new ClusterError(
    "bad-usage",
    `Nodes of clusters of this kind (${name}) can only be restarted, without \`force\`.`,
  );
}

const loginsAtOnce = 20;

/** Resolves when all nodes of a cluster that run again accept logins. Without the cluster's key, it only says that. */
export async function awaitLogins(
  cluster: ClusterRecord,
  logins: Pick<Login, "setsClocks" | "areBooting">,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<void> {
  if (!(await clusterKey(cluster)).isHere) {
    runtime.progress.note("This machine doesn't have the cluster's key, so it does not wait for logins to the nodes.");
    return;
  }
  using step = runtime.progress.start("Log in to the nodes");
  await using connections = openConnections(cluster.directory, runtime);
  await mapConcurrently(
    cluster.nodes,
    loginsAtOnce,
    async (node) => awaitLogin({ ...logins, node, connections }, runtime, signal),
    signal,
  );
  step.done();
}

interface Login {
  readonly node: ClusterRecord["nodes"][number];
  readonly connections: ConnectionPool;
  /** Whether the nodes' clocks stand where they were when the nodes stopped. */
  readonly setsClocks: boolean;
  /** Whether their users' logins may be refused for a while. */
  readonly areBooting: boolean;
}

async function awaitLogin(
  { node, connections, setsClocks, areBooting }: Login,
  { clock }: Runtime,
  signal: AbortSignal,
): Promise<void> {
  const logIn = async (): Promise<void> => {
    const connection = await connections.connect(node, signal).catch((error: unknown) => {
      throw areBooting ? asTransient(error) : error;
    });
    if (!setsClocks) return;
    const time = `@${(clock.now() / 1000).toFixed(3)}`;
    const set = {
      argv: ["date", `--set=${time}`],
      sudo: true,
      limitMs: waits.continuedLogin.limitMs,
      task: "setting its clock",
    };
    const { status, stderr } = await connection.run(set, signal);
    if (status === 0) return;
    throw new ClusterError(
      "remote-command-failed",
      `The clock of ${nodeReference(node)} cannot be set: ${outsideReason(stderr) || `date exited with ${status}`}.`,
    );
  };
  await retry(logIn, ruleOf(waits.continuedLogin, clock), signal);
}

function asTransient(error: unknown): unknown {
  if (!hasErrorId(error, "connection-failed") || error.transient) return error;
  const { message, hint, facts } = ClusterError.marked(error);
  return new ClusterError(error.id, message, { facts, transient: true, cause: error, ...(hint && { hint }) });
}
