import { ClusterError } from "../../errors.ts";
import type { NodeRecord } from "../../model/cluster-record.ts";
import { nodeReference } from "../../model/cluster-record.ts";
import type { Connection } from "../../ssh/connection/connection.ts";
import type { ConnectionPool } from "../../ssh/connection/pool.ts";
import type { Clock } from "../../system/clock.ts";
import type { Progress, Step } from "../../system/progress.ts";
import { retry } from "../../system/retry.ts";

/** One step of the installation on one node. It may run again after a lost connection. */
export interface Phase<Result = void> {
  readonly title: string;
  run(context: PhaseContext, signal: AbortSignal): Promise<Result>;
}

export interface PhaseContext {
  readonly node: NodeRecord;
  /** `master_0` */
  readonly reference: string;
  readonly connection: Connection;
  readonly step: Step;
  readonly progress: Progress;
}

export interface PhaseSurroundings {
  readonly connections: ConnectionPool;
  readonly clock: Clock;
  readonly progress: Progress;
}

const reconnectMs = 120_000;

/** Runs a phase on a node and shows its progress. It reopens a lost connection until two minutes after the first loss. */
export async function runPhase<Result>(
  phase: Phase<Result>,
  node: NodeRecord,
  surroundings: PhaseSurroundings,
  signal: AbortSignal,
): Promise<Result> {
  const { connections, clock, progress } = surroundings;
  const reference = nodeReference(node);
  using step = progress.start(phase.title, reference);
  const attempt = async (): Promise<Result> => {
    const connection = await connections.connect(node, signal);
    return phase.run({ node, reference, connection, step, progress }, signal);
  };
  const result = await attempt().catch((error: unknown) => {
    signal.throwIfAborted();
    if (!isConnectionLoss(error)) throw error;
    step.update(error.message);
    return retry(attempt, reconnecting(clock, step), signal);
  });
  step.done();
  return result;
}

/** Other transient failures were already retried where they occurred. */
const isConnectionLoss = (error: unknown): error is ClusterError =>
  error instanceof ClusterError &&
  error.transient &&
  (error.id === "connection-failed" || error.id === "transfer-failed");

function reconnecting(clock: Clock, step: Step): Parameters<typeof retry>[1] {
  return {
    clock,
    deadlineMs: clock.now() + reconnectMs,
    pauseMs: (failures) => Math.min(500 * 2 ** failures, 10_000),
    onFailure: (error) => {
      step.update(error.message);
    },
  };
}
