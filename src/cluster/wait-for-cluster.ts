import type { Backend } from "../model/backend.ts";
import type { Surroundings } from "../system/surroundings.ts";
import { assertKeyIsHere } from "./connections/cluster-key.ts";
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
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const cluster = await findCluster(backend, request.clusterId, signal);
  await assertKeyIsHere(cluster);
  const { waitUntilReady } = await import("../platform/readiness.ts");
  await using connections = openMaskedConnections(cluster, surroundings);
  await waitUntilReady(
    {
      describe: async (inner) => findCluster(backend, request.clusterId, inner),
      cluster,
      connections,
      login: cluster.variant === "enterprise" ? request.login : undefined,
      skipHttpChecks: request.skipHttpChecks,
      deadlineMs: request.deadlineMs,
      clock: surroundings.clock,
      progress: surroundings.progress,
    },
    signal,
  );
  return cluster;
}
