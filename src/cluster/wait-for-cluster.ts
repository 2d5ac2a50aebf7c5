import type { Backend } from "../backend/contract.ts";
import { ClusterError } from "../errors.ts";
import { timeLimit } from "../system/time-limit.ts";
import type { Runtime } from "../system/runtime.ts";
import { assertKeyIsHere } from "./connections/cluster-key.ts";
import { keepLastRecord } from "./connections/last-record.ts";
import { findCluster } from "./find-cluster.ts";
import { openMaskedConnections } from "./connections/masked-connections.ts";
import type { SuperuserLogin } from "./superuser-login.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";

export interface WaitRequest {
  readonly clusterId: string;
  /** Used for enterprise only, which requires it. */
  readonly login: SuperuserLogin | undefined;
  readonly skipHttpChecks: boolean;
  /** Clock time at which the wait gives up (`deadline-passed`). */
  readonly deadlineMs: number;
}

/** Resolves when the platform is ready on every node; platform/readiness.ts says what that means and how it fails. */
export async function waitForCluster(
  backend: Backend<unknown>,
  request: WaitRequest,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  using limit = timeLimit(request.deadlineMs - runtime.clock.now(), waitTooSlow(request.clusterId));
  const cluster = await findCluster(backend, request.clusterId, AbortSignal.any([signal, limit.signal]));
  await assertKeyIsHere(cluster);
  const { waitUntilReady } = await import("../platform/readiness.ts");
  await using connections = openMaskedConnections(cluster, runtime);
  await waitUntilReady(
    {
      describe: async (inner) => findCluster(backend, request.clusterId, inner),
      cluster,
      connections,
      login: cluster.variant === "enterprise" ? request.login : undefined,
      skipHttpChecks: request.skipHttpChecks,
      deadlineMs: request.deadlineMs,
      clock: runtime.clock,
      progress: runtime.progress,
    },
    signal,
  );
  await keepLastRecord(cluster);
  return cluster;
}

/** Returns the error for a wait whose time is over before anything is known about the nodes. */
export function waitTooSlow(clusterId: string): ClusterError {
  return new ClusterError("deadline-passed", `Waiting for cluster "${clusterId}" exceeded its time limit.`, {
    hint: "Allow more time with `timeout`, or see the log for what was slow.",
    facts: { cluster: clusterId },
  });
}
