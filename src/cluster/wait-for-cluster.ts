import { optionName } from "../references.ts";
import type { Backend } from "../backend/contract.ts";
import type { ClusterName, ClusterRecord, Variant } from "../model/cluster-record.ts";
import type { ReadinessRequest } from "../platform/readiness/readiness.ts";
import { type Configuration, superuserOf } from "../platform/configuration/configuration.ts";
import { keepLastRecord } from "../store/last-record.ts";
import { type Checked, problem } from "../model/checked.ts";
import { type Work, passedMs } from "../system/runtime.ts";
import { timeLimit, tooSlow } from "../system/time-limit.ts";
import {
  assertKeyIsHere,
  openConnections,
  openMaskedConnections,
  warnIfCutShort,
} from "./connections.ts";
import type { OpenCluster } from "./create.ts";
import { checkRecorder } from "./events/record-event.ts";
import { findCluster, lastRecord } from "./find-cluster.ts";

export interface WaitRequest {
  readonly clusterId: string;
  /** Used for enterprise only, which requires it. */
  readonly login: SuperuserLogin | undefined;
  readonly skipHttpChecks: boolean;
  /** The time of `passedMs` at which the wait gives up (`deadline-passed`). */
  readonly deadlineMs: number;
  /** The cluster, if it has just been created; it need not be found, and its connections are used. */
  readonly created?: OpenCluster;
  readonly onAnswers?: ReadinessRequest["onAnswers"];
}

/**
 * Resolves when the platform is ready on every node. For the conditions and the errors, see
 * platform/readiness/readiness.ts.
 */
export async function waitForCluster(
  work: Work,
  backend: Backend<unknown>,
  request: WaitRequest,
): Promise<ClusterRecord> {
  using limit = timeLimit(
    request.deadlineMs - passedMs(work.clock),
    tooSlow("Waiting for", request.clusterId),
  );
  const { created } = request;
  const signal = AbortSignal.any([work.signal, limit.signal]);
  await using early = created === undefined ? await logInEarly(work, backend, request) : undefined;
  const cluster = created?.cluster ?? (await findCluster(backend, request.clusterId, signal));
  await assertKeyIsHere(cluster);
  await warnIfCutShort(cluster, work);
  const { waitUntilReady } = await import("../platform/readiness/readiness.ts");
  const open = created?.connections ?? early?.of(cluster);
  await using connections = openMaskedConnections(cluster, work, open);
  const recordChecks = checkRecorder(cluster.directory, work);
  const waiting = waitUntilReady(
    {
      describe: async (inner) => findCluster(backend, request.clusterId, inner),
      cluster,
      connections: connections.forQuestions,
      untilMasked: async () => connections.readNew(),
      login: cluster.variant === "enterprise" ? request.login : undefined,
      skipHttpChecks: request.skipHttpChecks,
      deadlineMs: request.deadlineMs,
      clock: work.clock,
      progress: work.progress,
      onAnswers: (answers) => {
        recordChecks(answers);
        request.onAnswers?.(answers);
      },
    },
    work.signal,
  );
  await waiting.catch(async (error: unknown) => {
    if (!work.signal.aborted) await connections.readAgain();
    throw error;
  });
  await keepLastRecord(cluster);
  return cluster;
}

/**
 * Logs in to the nodes at their last known addresses while the backend is asked. A node that proves its pinned host key
 * is the right one; of any other, nothing is used.
 */
async function logInEarly(
  work: Work,
  backend: Backend<unknown>,
  { clusterId }: Pick<WaitRequest, "clusterId">,
) {
  const known = await lastRecord(backend, clusterId, work);
  if (known === undefined) return undefined;
  const pool = openConnections(known.directory, work);
  for (const node of known.nodes) pool.connect(node, work.signal).catch(() => {});
  return {
    of: ({ directory }: ClusterName) => (directory === known.directory ? pool : undefined),
    [Symbol.asyncDispose]: async () => pool[Symbol.asyncDispose](),
  };
}

export interface SuperuserLogin {
  readonly username: string;
  /** Secret. */
  readonly password: string;
}

/**
 * Returns the login of the superuser that the extra configuration creates; undefined for other
 * variants, which have none. It is a problem if the configuration holds a password hash and the
 * password was not given.
 */
export function superuserLogin(
  variant: Variant,
  extraConfiguration: Configuration,
  given: string | undefined,
): Checked<SuperuserLogin | undefined> {
  if (variant !== "enterprise") return { value: undefined };
  const superuser = superuserOf(extraConfiguration);
  const password = given ?? superuser.password;
  if (password !== undefined) return { value: { username: superuser.username, password } };
  return problem(
    `${optionName("wait")}: ${optionName("extraConfig")} contains only the hash of the superuser's password; pass the password with ${optionName("superuserPassword")}`,
  );
}
