/**
 * A creation from beginning to end: its steps, their order, and what runs concurrently. `createOpenCluster` is the list
 * of steps, `installOn` the part that runs on the machines, and `undoCreation` the roll-back after a failure, or after
 * the use. The order is stated nowhere else.
 */
import type { Backend, Creation } from "../backend/contract.ts";
import { rm } from "node:fs/promises";
import { ClusterError, hasErrorId, messageOf } from "../errors.ts";
import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";
import type { PhaseWork } from "../platform/install/phase.ts";
import {
  checkVersion,
  configure,
  fetchArtifact,
  type FoundArtifact,
  type Installation,
  type InstallerSource,
  isFirstMaster,
  noFirstMaster,
  openInstallation,
  prepare,
  serve,
  startInstallation,
} from "../platform/install/steps.ts";
import type { ConnectionPool } from "../ssh/connection/connection-pool.ts";
import { closeMasterConnections } from "../ssh/session/master-connection.ts";
import { creationFiles, endCreation } from "../store/creation-folder.ts";
import { poll, retry } from "../system/retry.ts";
import { type Runtime, type Work, endedBy } from "../system/runtime.ts";
import { type Task, type TaskGroup, both, withTasks } from "../system/concurrency.ts";
import { orAborted, timeLimit, whileWaitingFor } from "../system/time-limit.ts";
import { ruleOf, waits } from "../system/waits.ts";
import { openConnections } from "./connections.ts";
import { type CreateRequest, creationLimit } from "./create/create-request.ts";
import { firstLogin } from "./create/first-login.ts";
import { noteSuspensions } from "./correct-slept-clocks.ts";
import { lockFolder, removeLeftovers } from "./create/lock-folder.ts";
import { type CreationTarget, planMachines } from "./create/plan-machines.ts";
import {
  type Machines,
  type MachinesToStart,
  StartingMachines,
} from "./create/starting-machines.ts";
import { recordFailure, recordNodes } from "./events/record-event.ts";
import { saveFailureLogs } from "./logs/save-logs.ts";

/** A new cluster, and the connections to its nodes. */
export interface OpenCluster extends AsyncDisposable {
  readonly cluster: ClusterRecord;
  readonly connections: ConnectionPool;
}

/** Creates a cluster and closes the connections to it. See `createOpenCluster`. */
export async function createCluster<Options>(
  work: Work,
  request: CreateRequest<Options>,
  target: CreationTarget<Options>,
): Promise<ClusterRecord> {
  await using created = await createOpenCluster(work, request, target);
  return created.cluster;
}

/**
 * Creates a cluster's machines and starts the installation on them. After a failure or an abort
 * only logs in the cluster's folder remain, unless `keepOnFailure` is set; after the request's
 * `use` of the cluster, nothing. Throws the errors of the backend and the installation,
 * `deadline-passed`, the signal's reason, and what the use throws.
 */
export async function createOpenCluster<Options>(
  work: Work,
  request: CreateRequest<Options>,
  target: CreationTarget<Options>,
): Promise<OpenCluster> {
  const { clusterId, deadlineMs, use } = request;
  const { backend, install } = target;
  const folder = await lockFolder(work, backend, request);
  const { directory, publicKey } = folder;
  if (backend.name === "vm") await noteSuspensions(directory);
  const connections = openConnections(directory, work);
  const close = async (): Promise<void> => connections[Symbol.asyncDispose]();
  using limit = creationLimit(request, work.clock);
  const inTime = endedBy(work, limit);
  const begun: { creation?: Creation; use?: Promise<void> } = {};
  const where = { connections, directory: request.logsFolder ?? directory };
  const creationToUndo = (): FailedCreation => ({
    creation: begun.creation,
    directory,
    keepOnFailure: request.keepOnFailure,
    saveLogs: async (cluster, logsSignal) =>
      saveFailureLogs({ ...work, signal: logsSignal }, backend, { cluster, ...where }),
  });
  using _remains = request.onAbandon(
    () => begun.creation?.remains()?.left ?? "Nothing has been created.",
  );
  try {
    const planned = planMachines(request, target, inTime.signal);
    // A plan reckons with clusters whose time is over as if they were gone.
    const [creation] = await both(planned, removeExpired(backend, inTime.signal));
    request.assertPlan?.(creation.summary);
    begun.creation = creation;
    for (const line of creation.summary.lines) work.progress.detail(1, line.join(": "));
    await removeLeftovers(inTime, backend, { root: folder.root, clusterId });
    await creation.claim(folder, inTime.signal);
    const logIn = await firstLogin(
      { directory, connections, creation, deadlineMs, untilSwitched: install === undefined },
      work,
    );
    const start = { request, target, connections, creation, logIn, publicKey };
    const cluster = await startOn(inTime, start).catch(async (failure: unknown) => {
      const { signal } = inTime;
      if (signal.aborted || (await creation.recover?.(failure, signal)) !== true) throw failure;
      return startOn(inTime, start);
    });
    await endCreation(directory, use === undefined ? "finished" : "in-use");
    recordNodes(directory, cluster.nodes, work);
    if (use !== undefined) {
      begun.use = use(cluster);
      await orAborted(begun.use, work.signal);
      await undoCreation(creationToUndo(), "used", work);
    }
    return { cluster, connections, [Symbol.asyncDispose]: close };
  } catch (error) {
    recordFailure(directory, "create", error, work);
    await undoCreation(creationToUndo(), { error, isInterrupted: work.signal.aborted }, work);
    // Machines that end need not wait for a command that was interrupted, but it ends no later than this function.
    await Promise.allSettled([begun.use, close()]);
    throw error;
  }
}

const removeExpired = async ({ local }: Pick<Backend<never>, "local">, signal: AbortSignal) =>
  local?.removeExpired(signal);

interface Start<Options> extends Pick<MachinesToStart, "publicKey" | "logIn"> {
  readonly request: CreateRequest<Options>;
  readonly target: CreationTarget<Options>;
  readonly connections: ConnectionPool;
  readonly creation: Creation;
}

/** Launches the machines, and installs on them. */
async function startOn<Options>(work: Work, start: Start<Options>): Promise<ClusterRecord> {
  const { request, target, connections, creation } = start;
  const { backend, install } = target;
  const machines = new StartingMachines(start, work);
  const readFacts = async (inner: AbortSignal) =>
    request.readFacts?.({ cluster: machines.cluster, connections }, inner);
  try {
    return install
      ? await installOn(
          { ...work, connections },
          machines,
          openInstallation(work, install, backend.nodes),
        )
      : await bringUp(work, machines, readFacts);
  } catch (error) {
    throw await causeOf(error, { creation, machines }, work);
  }
}

/** The steps on the machines and the installation. The first failure ends all others, before it is thrown. */
export async function installOn(
  work: PhaseWork,
  machines: Machines,
  installation: Installation,
): Promise<ClusterRecord> {
  const { firstLayout } = installation;
  return withTasks(work, async (tasks) => {
    startMachines(machines, tasks);
    const nodes: { readonly node: NodeRecord; readonly prepared: Task<void> }[] = [];
    const found: { artifact?: Task<FoundArtifact> } = {};
    for await (const node of machines.arrivals(tasks.work.signal)) {
      const booted = tasks.start(async ({ signal }) => machines.logIn(node, signal));
      const prepared = tasks.start(async (inner) => {
        await booted.result();
        await prepare(inner, installation, { node, layout: firstLayout });
      });
      nodes.push({ node, prepared });
      if (!isFirstMaster(node)) continue;
      found.artifact = tasks.start(async (inner) => {
        await booted.result();
        // A long download begins at once. The artifact runs only on a node that is prepared.
        await fetchArtifact(inner, installation, { node, untilPrepared: prepared.result });
        await prepared.result();
        return checkVersion(inner, installation, node);
      });
    }
    const { cluster } = machines;
    const served = tasks.start(async (inner): Promise<InstallerSource> => {
      if (found.artifact === undefined) throw noFirstMaster(cluster);
      const artifact = await found.artifact.result();
      const layout = await configure(inner, installation, { cluster, artifact });
      const url = await serve(inner, installation, { cluster, layout });
      return { layout, url, release: artifact.version.version };
    });
    const started = nodes.map(({ node, prepared }) =>
      tasks.start(async (inner) => {
        const [source] = await Promise.all([served.result(), prepared.result()]);
        const { layout } = source;
        if (layout.name !== firstLayout.name) await prepare(inner, installation, { node, layout });
        await startInstallation(inner, installation, { node, source });
      }),
    );
    const complete = await machines.untilComplete(tasks.work.signal);
    const all = async () => Promise.all(started.map(async (task) => task.result()));
    await untilStarted(all, work.signal);
    return complete;
  });
}

async function bringUp(
  work: Work,
  machines: Machines,
  readFacts: (signal: AbortSignal) => Promise<void>,
): Promise<ClusterRecord> {
  return withTasks(work, async (tasks) => {
    startMachines(machines, tasks);
    for await (const node of machines.arrivals(tasks.work.signal))
      tasks.start(async ({ signal }) => machines.logIn(node, signal));
    const complete = await machines.untilComplete(tasks.work.signal);
    await untilStarted(async () => readFacts(tasks.work.signal), work.signal);
    return complete;
  });
}

function startMachines(machines: Machines, tasks: TaskGroup<Pick<Work, "signal">>): void {
  // The watch comes first because its error describes best what a time limit has interrupted.
  tasks.start(async ({ signal }) => machines.watch(signal));
  tasks.start(async ({ signal }) => machines.launch(signal));
}

const untilStarted = async (task: () => Promise<unknown>, signal: AbortSignal): Promise<unknown> =>
  whileWaitingFor(() => "the installation to start on every node", task, signal);

/**
 * Returns the cause of a failed creation: if a machine has ended, that explains a lost connection.
 * A cloud may notice it later than we do.
 */
async function causeOf(
  error: unknown,
  { creation, machines }: { readonly creation: Creation; readonly machines: StartingMachines },
  { clock, progress, signal }: Work,
): Promise<unknown> {
  if (signal.aborted || !machines.areComplete || !hasErrorId(error, "connection-failed"))
    return error;
  const look = async (inner: AbortSignal): Promise<undefined> => void (await creation.look(inner));
  const tolerates = (problem: unknown): boolean => !hasErrorId(problem, "machine-failed");
  const waitingFor = (): string => "the cause of a lost connection: whether a machine has ended";
  const shows = { progress, waitingFor };
  try {
    await poll(look, { ...ruleOf(waits.lostMachine, clock), tolerates, shows }, signal);
    return error;
  } catch (problem) {
    return tolerates(problem) ? error : problem;
  }
}

const logsLimitMs = 20_000;
const { limitMs } = waits.rollBack;

export interface FailedCreation {
  /** Undefined if the creation was not even planned. */
  readonly creation: Creation | undefined;
  readonly directory: string;
  readonly keepOnFailure: boolean;
  /** Saves logs that help explain the failure, in the folder. */
  readonly saveLogs: (cluster: ClusterRecord, signal: AbortSignal) => Promise<void>;
}

/** Why a creation is undone: something has failed, or the cluster has served its purpose. */
export type UndoReason = { readonly error: unknown; readonly isInterrupted: boolean } | "used";

/**
 * Rolls a creation back, with time limits of its own, because those of the creation have passed.
 * After a failure it saves the logs first. After an interruption it terminates the machines first,
 * because the user may kill the program seconds later. Never throws: it reports what is left and
 * keeps the folder, so that the next creation of this id on this machine removes the rest.
 */
export async function undoCreation(
  failed: FailedCreation,
  reason: UndoReason,
  runtime: Runtime,
): Promise<void> {
  const { creation, directory } = failed;
  // A command may have been run on a node in the meantime.
  await closeMasterConnections(directory, runtime.environment);
  if (creation?.remains() === undefined) return await forget(directory, "everything", runtime);
  const touched = { ...failed, creation };
  // There is nothing to inspect after a use, or if the id was taken.
  const isWorthless = reason === "used" || hasErrorId(reason.error, "cluster-exists");
  const isInterrupted = reason !== "used" && reason.isInterrupted;
  if (failed.keepOnFailure && !isWorthless) return await keep(touched, runtime);
  using step = runtime.progress.start("Remove what was created");
  try {
    const left = await undo(touched, { isInterrupted, isWorthless }, runtime);
    if (left === undefined) {
      await forget(directory, isWorthless ? "everything" : "the key", runtime);
      return step.done();
    }
    runtime.progress.warn(left);
  } catch (problem) {
    runtime.progress.warn(
      `The removal failed: ${messageOf(problem)} ${creation.remains()?.left ?? ""}`,
    );
  }
  // If this can't be written, the creation counts as abandoned once this process has ended.
  await endCreation(directory, "abandoned").catch(() => {});
}

type TouchedCreation = FailedCreation & { readonly creation: Creation };

async function undo(
  touched: TouchedCreation,
  {
    isInterrupted,
    isWorthless,
  }: { readonly isInterrupted: boolean; readonly isWorthless: boolean },
  runtime: Runtime,
): Promise<string | undefined> {
  const { creation } = touched;
  using limit = timeLimit(limitMs, tooSlow());
  const work = { ...runtime, signal: limit.signal };
  const stop = async (): Promise<void> =>
    retryTransient(work, "to terminate the machines", async (signal) => creation.stop(signal));
  if (isInterrupted) {
    try {
      await stop();
    } finally {
      // Save the logs even if the machines can't be terminated.
      await saveLogs(touched, runtime);
    }
  } else {
    if (!isWorthless) await saveLogs(touched, runtime);
    await stop();
  }
  return await retryTransient(work, "to remove the rest", async (signal) =>
    creation.remove(signal),
  );
}

/** Retries transient failures until the limit, and reports what it is waiting for. */
async function retryTransient<Result>(
  { clock, progress, signal }: Pick<Work, "clock" | "progress" | "signal">,
  aim: string,
  task: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const onFailure = (error: ClusterError): void =>
    progress.waiting(`waiting ${aim}: ${messageOf(error)}`);
  try {
    return await retry(task, { ...ruleOf(waits.rollBack, clock), onFailure }, signal);
  } finally {
    progress.waiting("");
  }
}

async function keep(touched: TouchedCreation, runtime: Runtime): Promise<void> {
  await saveLogs(touched, runtime);
  runtime.progress.note(`Kept as requested: ${touched.creation.remains()?.kept ?? ""}`);
  try {
    await endCreation(touched.directory, "finished");
  } catch (error) {
    runtime.progress.warn(
      `The next create of this id removes what was kept, because of this: ${messageOf(error)}`,
    );
  }
}

/** Never throws, because a failure here must not prevent the removal. */
async function saveLogs(
  { creation, saveLogs: save }: TouchedCreation,
  { progress }: Runtime,
): Promise<void> {
  const signal = AbortSignal.timeout(logsLimitMs);
  try {
    await save(await creation.describe(signal), signal);
  } catch (error) {
    progress.warn(`The logs are incomplete: ${messageOf(error)}`);
  }
}

/**
 * Records that nothing of the creation is left, and removes its folder, or only its key if the
 * folder may contain logs. Never throws: what made the creation fail, such as a full disk, may
 * prevent that too. Then the next create of this id finds nothing to remove.
 */
async function forget(
  directory: string,
  what: "everything" | "the key",
  { progress }: Pick<Runtime, "progress">,
): Promise<void> {
  await endCreation(directory, "removed").catch(() => {});
  if (what === "everything") progress.closeLog?.();
  const path = what === "everything" ? directory : creationFiles(directory).privateKey;
  await rm(path, { recursive: true, force: true }).catch(() => {});
}

const tooSlow = (): ClusterError =>
  new ClusterError("deadline-passed", `It exceeded its limit of ${limitMs / 60_000} minutes.`);
