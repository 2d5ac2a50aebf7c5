import { ClusterError } from "../errors.ts";
import { type NodeRecord, nodeReference } from "../model/cluster-record.ts";
import {
  type ConnectionPool,
  firstToAnswer,
  waitingFor,
} from "../ssh/connection/connection-pool.ts";
import type { MasterConnection } from "../ssh/session/master-connection.ts";
import type { Session } from "../ssh/session/session.ts";
import type { Progress } from "../system/runtime.ts";
import { slowNote } from "../system/time-limit.ts";

export type Candidates = readonly [NodeRecord, ...NodeRecord[]];

interface Candidate {
  readonly node: NodeRecord;
  readonly master: MasterConnection | undefined;
}

export interface FirstSession {
  readonly candidates: Candidates;
  /** Looks up the node's open connection, if there may be one. */
  readonly masterOf: (node: NodeRecord) => Promise<MasterConnection | undefined>;
  readonly sshConfigFile: string;
  readonly connections: Pick<ConnectionPool, "connect">;
  /** Absent on a terminal, where the connection that delivers the script says it. */
  readonly progress: Pick<Progress, "note"> | undefined;
  readonly start: (candidate: Candidate, signal: AbortSignal) => Session;
}

interface Started {
  readonly node: NodeRecord;
  readonly session: Session;
  /** Whether the node may have the command. If not, the session has ended. */
  readonly isConnected: boolean;
}

/** How long the first candidate may take before the others are asked as well. */
const patienceMs = 2_000;
/** Each try waits until the server accepts connections again. */
const mostTries = 5;

/**
 * Starts a session on the first candidate or, if that doesn't answer, on the one that does so
 * first. Resolves when the node may have the command, or the session has ended. Opens no connection
 * only to look for an answer: from OpenSSH 9.8 on, sshd punishes those that end without a login.
 */
export async function startFirstSession(
  request: FirstSession,
  signal: AbortSignal,
): Promise<Started> {
  const [node, ...others] = request.candidates;
  const candidate = { node, master: await request.masterOf(node) };
  if (others.length === 0) {
    using _slow = slowNote(() => request.progress?.note(waitingFor(nodeReference(node))));
    return await startOn(request, candidate, signal);
  }
  // A command that is on its way over a shared login can't be called back.
  if (candidate.master?.hasSocket() !== true)
    return await startOnFastest(request, candidate, signal);
  const isThere = await candidate.master.reaches(
    request.sshConfigFile,
    nodeReference(node),
    patienceMs,
    signal,
  );
  signal.throwIfAborted();
  return await startOn(request, isThere ? candidate : await askAll(request, signal), signal);
}

/** If the server closes the connection in place of a greeting, waits until it accepts others. */
async function startOn(
  request: FirstSession,
  candidate: Candidate,
  signal: AbortSignal,
): Promise<Started> {
  for (let tries = 1; ; tries += 1) {
    const session = request.start(candidate, signal);
    const started = { node: candidate.node, session, isConnected: await session.connected };
    if (started.isConnected || tries === mostTries || !(await session.end).wasHungUp)
      return started;
    if ((await problemOf(request, candidate.node, signal)) !== undefined) return started;
  }
}

async function startOnFastest(
  request: FirstSession,
  first: Candidate,
  signal: AbortSignal,
): Promise<Started> {
  const trial = new AbortController();
  const abort = (): void => trial.abort(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  const starting = startOn(request, first, trial.signal);
  const patience = Promise.withResolvers<undefined>();
  // A timer that is left would keep the program from ending.
  const timer = setTimeout(() => patience.resolve(undefined), patienceMs);
  const early = await Promise.race([starting, patience.promise]).finally(() => clearTimeout(timer));
  if (early?.isConnected === true || signal.aborted) return await starting;
  // The session itself reports a refused login or another host key.
  const problem = early === undefined ? undefined : await problemOf(request, first.node, signal);
  if (early !== undefined && !(problem instanceof ClusterError && problem.transient)) return early;
  const asking = askAll(request, signal);
  asking.catch(() => {});
  const connected = starting.then(async (started) => (started.isConnected ? started : asking));
  try {
    const found = await Promise.race([connected, asking]);
    if ("session" in found) return found;
    if (found.node.id === first.node.id) {
      const started = await starting;
      if (started.isConnected) return started;
      await started.session.end;
      return signal.aborted ? started : await startOn(request, found, signal);
    }
    trial.abort(
      new ClusterError("connection-failed", `${nodeReference(first.node)} did not answer in time.`),
    );
    const { session, isConnected } = await starting;
    if (!isConnected || !(await session.end).hasBegun) return await startOn(request, found, signal);
  } catch (error) {
    trial.abort(error);
    await starting.then(({ session }) => session.end);
    throw error;
  }
  return await starting;
}

/**
 * A login that was opened before the network changed may hang although the node answers. The
 * session then logs in by itself.
 */
async function askAll(request: FirstSession, signal: AbortSignal): Promise<Candidate> {
  const node = await firstToAnswer(request.candidates, request.connections.connect, signal);
  const master = await request.masterOf(node);
  if (master?.hasSocket() !== true) return { node, master };
  const isUsable = await master.reaches(
    request.sshConfigFile,
    nodeReference(node),
    patienceMs,
    signal,
  );
  signal.throwIfAborted();
  return { node, master: isUsable ? master : undefined };
}

const problemOf = (
  { connections }: FirstSession,
  node: NodeRecord,
  signal: AbortSignal,
): Promise<unknown> =>
  connections.connect(node, signal).then(
    () => undefined,
    (error: unknown) => error,
  );
