import type { Backend } from "../backend/contract.ts";
import { join } from "node:path";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { stateFolder } from "../system/files/state-folder.ts";
import type { Runtime } from "../system/runtime.ts";
import { findLastRecord, keepLastRecord } from "./connections/last-record.ts";
import { type RunRequest, runOnNode } from "./run-on-node.ts";

export interface RunOnCluster {
  readonly backend: Pick<Backend<never>, "name" | "place">;
  readonly clusterId: string;
  /** Asks the backend for the cluster. */
  readonly find: (signal: AbortSignal) => Promise<ClusterRecord>;
  readonly request: RunRequest;
}

type RunRuntime = Runtime & { readonly onConnecting: () => void };

/**
 * Runs a command on a node like `runOnNode`. For machines elsewhere it connects to their last known addresses while the backend is asked for them.
 * That is safe because the node must prove its pinned host key before it receives anything. The backend's answer decides as long as no node has:
 * if there is no such cluster, or another one, nothing is run on the machine that has the address now.
 */
export async function runOnCluster(work: RunOnCluster, runtime: RunRuntime, signal: AbortSignal): Promise<number> {
  const { request } = work;
  const known = request.checkout === undefined ? await lastRecord(work, runtime) : undefined;
  const asking = new AbortController();
  const found = work.find(AbortSignal.any([signal, asking.signal]));
  // A failure goes to those who need the answer.
  const kept = found.then(keepLastRecord).catch(() => {});
  try {
    return await (known === undefined
      ? runOnNode(await found, request, runtime, signal)
      : runOnKnown({ known, found, request }, runtime, signal));
  } finally {
    asking.abort(new Error("The command has ended."));
    await kept;
  }
}

/** Only a backend with several places asks a service elsewhere. */
async function lastRecord({ backend, clusterId }: RunOnCluster, runtime: Runtime): Promise<ClusterRecord | undefined> {
  if (backend.place === undefined) return undefined;
  const root = join(stateFolder(runtime.environment), backend.name, backend.place.name);
  return findLastRecord(root, clusterId, runtime.clock.now());
}

interface KnownCluster {
  readonly known: ClusterRecord;
  readonly found: Promise<ClusterRecord>;
  readonly request: RunRequest;
}

async function runOnKnown(
  { known, found, request }: KnownCluster,
  runtime: RunRuntime,
  signal: AbortSignal,
): Promise<number> {
  const refuted = new AbortController();
  const state = { hasBegun: false, isConnecting: false };
  const confirm = async (): Promise<void> => {
    if (!isSame(await found, known)) throw new Error("The cluster has changed.");
  };
  confirm().catch((reason: unknown) => refuted.abort(reason));
  const attempt = {
    refuted: refuted.signal,
    confirm,
    onBegun: () => {
      state.hasBegun = true;
      runtime.onConnecting();
    },
  };
  const tentative = { ...runtime, onConnecting: () => (state.isConnecting = true) };
  try {
    return await runOnNode(known, { ...request, attempt }, tentative, signal);
  } catch (error) {
    if (state.hasBegun || signal.aborted) throw error;
    const cluster = await found;
    if (!state.isConnecting || !isSame(cluster, known)) return await runOnNode(cluster, request, runtime, signal);
    runtime.onConnecting();
    throw error;
  }
}

/** Whether both lead to the same machines and give a command the same environment. */
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
