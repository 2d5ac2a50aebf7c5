import { join } from "node:path";
import type { Backend } from "../../backend/contract.ts";
import { ClusterError } from "../../errors.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { acquireProcessLock } from "../../system/processes/process-identity.ts";
import { type Work, passedMs } from "../../system/runtime.ts";
import { assertKeyIsHere } from "../connections.ts";
import { findCluster } from "../find-cluster.ts";
import { type ChaosOptions, type ChaosStep, chaosSteps, stepText } from "./chaos-plan.ts";
import { type Abandon, beginFault, untilFaultEnds } from "./faults.ts";
import { assertPossible } from "./plan-fault.ts";
import { untilRecovered } from "./until-recovered.ts";

export interface ChaosRequest {
  readonly clusterId: string;
  readonly options: ChaosOptions;
  /** No fault begins after this time; absent: faults begin until the signal is aborted. */
  readonly durationMs?: number | undefined;
  /** Called before a fault begins. */
  readonly onFault?: ((step: ChaosStep) => void) | undefined;
  /** Called when a fault has begun, and its effect has been seen. */
  readonly onShown?: (() => void) | undefined;
  readonly abandon?: Abandon;
}

/**
 * Begins one fault after the other, as the plan says, and waits until each is healed. When the signal is aborted, heals
 * the present one first. A fault that can't begin or doesn't show, and a cluster that doesn't recover, end the run with
 * their errors. If this computer is lost, the nodes heal the fault by themselves, and no other begins. Throws
 * `cluster-busy` if this computer runs another chaos on the cluster: together, they could take nodes that it needs.
 */
export async function runChaos(
  work: Work,
  backend: Backend<unknown>,
  { clusterId, options, durationMs = Infinity, onFault, onShown, abandon }: ChaosRequest,
): Promise<void> {
  const cluster = await findCluster(backend, clusterId, work.signal);
  for (const kind of options.kinds) assertPossible(cluster, kind);
  await assertKeyIsHere(cluster);
  await using _ = await lockChaos(work, cluster);
  const { clock, progress } = work;
  const beganMs = passedMs(clock);
  const last = Math.max(...(options.only ?? [Infinity]));
  for (const step of chaosSteps(cluster, options)) {
    if (step.atMs >= durationMs) return;
    const leftMs = beganMs + step.atMs - passedMs(clock);
    if (leftMs > 0) {
      progress.waiting(`the next fault: ${stepText(step)}`);
      await clock.sleep(leftMs, work.signal);
      progress.waiting("");
    }
    work.signal.throwIfAborted();
    progress.note(`Fault ${stepText(step)}`);
    onFault?.(step);
    const { request } = step;
    const begun = await beginFault(work, backend, { clusterId, request, abandon });
    onShown?.();
    await untilFaultEnds(work, backend, { clusterId, begun, abandon });
    if (options.recoverMs !== undefined) {
      const recovery = { clusterId, limitMs: options.recoverMs };
      await untilRecovered(work, backend, recovery);
    }
    if (step.number >= last) return;
  }
}

async function lockChaos(
  { clock, signal }: Work,
  { id, directory }: ClusterRecord,
): Promise<AsyncDisposable> {
  const error = new ClusterError(
    "cluster-busy",
    `Another process begins random faults on cluster "${id}".`,
    {
      hint: "Together, they could concern more nodes than the cluster can do without. Wait until it has ended.",
      facts: { cluster: id },
    },
  );
  const waiting = { clock, onWait: () => {}, giveUp: { atMs: clock.now(), error } };
  return acquireProcessLock(join(directory, "chaos.lock"), waiting, signal);
}
