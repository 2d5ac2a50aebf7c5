import type { Backend } from "../backend/contract.ts";
import { ClusterError, hasErrorId } from "../errors.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { lastRecord } from "./find-cluster.ts";
import { eitherSignal, orAborted } from "../system/time-limit.ts";
import { once } from "../system/concurrency.ts";
import type { Clock } from "../system/runtime.ts";
import { keepLastRecord } from "../store/last-record.ts";
import {
  type NodeRun,
  type RunRequest,
  type RunWork,
  runOnNode,
  startOnNode,
} from "./run-on-node.ts";

interface RunOnCluster {
  readonly backend: Pick<Backend<never>, "name" | "scope">;
  readonly clusterId: string;
  readonly find: (signal: AbortSignal) => Promise<ClusterRecord>;
  readonly request: RunRequest;
}

/** How long a login at the last known address may take before the backend is queried. */
const loginGraceMs = 2_000;

/**
 * Runs a command on a node like `runOnNode`. For machines elsewhere it connects to the last known
 * address, because a node that proves the pinned host key is the right one. It queries the backend
 * only if no address is known, or if a login there fails.
 */
export async function runOnCluster(work: RunWork, wanted: RunOnCluster): Promise<number> {
  const { request } = wanted;
  const ended = new AbortController();
  using either = eitherSignal([work.signal, ended.signal]);
  const ask = once(async () => {
    const cluster = await wanted.find(either.signal);
    await keepLastRecord(cluster);
    return cluster;
  });
  const known =
    request.checkout === undefined
      ? await lastRecord(wanted.backend, wanted.clusterId, work)
      : undefined;
  try {
    return known === undefined
      ? await runOnNode(work, await ask(), request)
      : await runOnKnown(work, { known, ask, request });
  } finally {
    ended.abort(new Error("The command has ended."));
  }
}

interface KnownCluster {
  readonly known: ClusterRecord;
  /** Asks the backend, once. */
  readonly ask: () => Promise<ClusterRecord>;
  readonly request: RunRequest;
}

async function runOnKnown(work: RunWork, cluster: KnownCluster): Promise<number> {
  const wrong = new AbortController();
  const ended = new AbortController();
  using either = eitherSignal([work.signal, wrong.signal]);
  await using run = startOnNode({ ...work, signal: either.signal }, cluster.known, cluster.request);
  const watching = abortIfWrong(run, cluster, { wrong, clock: work.clock }, ended.signal);
  const { hasBegun, report } = await run.end;
  ended.abort(new Error("The run has ended."));
  await watching;
  if (hasBegun) return await report(work.signal);
  work.signal.throwIfAborted();
  const found = await cluster.ask();
  if (isSame(found, cluster.known)) return await report(work.signal);
  return await runOnNode(work, found, cluster.request);
}

/** If there is no login in time, asks the backend, and aborts the run if there is another cluster now, or none. */
async function abortIfWrong(
  { mayHaveBegun }: NodeRun,
  { known, ask }: KnownCluster,
  { wrong, clock }: { readonly wrong: AbortController; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const abort = (): void => {
    if (mayHaveBegun()) return;
    const message = `Cluster "${known.id}" has changed. It is not known whether the command finished.`;
    wrong.abort(new ClusterError("connection-failed", message, { facts: { cluster: known.id } }));
  };
  try {
    await clock.sleep(loginGraceMs, signal);
    if (!mayHaveBegun() && !isSame(await orAborted(ask(), signal), known)) abort();
  } catch (error) {
    // Other failures don't concern the node, which may still answer.
    if (!signal.aborted && hasErrorId(error, "cluster-not-found")) abort();
  }
}

/** Whether both records have the same machines, and give a command the same environment. */
function isSame(a: ClusterRecord, b: ClusterRecord): boolean {
  const facts = ({ creationId, nodes }: ClusterRecord): string =>
    JSON.stringify([
      creationId,
      nodes.map(({ id, role, index, state, privateAddress, ssh }) => [
        [id, role, index, state, privateAddress],
        [ssh.host, ssh.port, ssh.user],
      ]),
    ]);
  return facts(a) === facts(b);
}
