import { randomUUID } from "node:crypto";
import { ClusterError } from "../../errors.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import type { RemoteResult } from "../../ssh/connection/connection.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { withTasks } from "../../system/concurrency.ts";
import { retry } from "../../system/retry.ts";
import type { Clock } from "../../system/runtime.ts";
import { orAborted } from "../../system/time-limit.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import { installPaths } from "../install-paths.ts";
import { type PhaseWork, reasonOf } from "../install/phase.ts";
import lockFile from "./upgrade-lock.sh" with { type: "text" };

interface LockRequest {
  readonly cluster: Pick<ClusterRecord, "id">;
  readonly firstMaster: NodeRecord;
}

type LockWork = Pick<PhaseWork, "connections" | "clock" | "signal">;

const taken = 75;
const beatMs = 15_000;
const silentSeconds = 60;
const releaseLimitMs = 5_000;
/** The limit for reading the cluster's secrets, a login and a look at a file. */
const answerLimitMs = 3 * 60_000;

const lockScript = shellText(lockFile, {
  FILE: installPaths.upgradeLock,
  TAKEN: taken,
  SILENT_SECONDS: silentSeconds,
});

/**
 * Runs a task while the first master keeps other upgrades from running, on any computer. The lock
 * ends with the connection; if that is lost because the master restarts, it is taken again. Throws
 * `cluster-busy` if another upgrade has the lock.
 */
export async function withUpgradeLock<Part extends LockWork, Result>(
  work: Part,
  request: LockRequest,
  task: (part: Part) => Promise<Result>,
): Promise<Result> {
  return withTasks(work, async (tasks) => {
    const held = Promise.withResolvers<void>();
    const done = new AbortController();
    const lock = tasks.start(async (inner) =>
      hold(inner, request, { onHeld: held.resolve, done: done.signal }),
    );
    await untilHeld(tasks.work, held.promise, request);
    try {
      return await task(tasks.work);
    } finally {
      done.abort();
      // The next upgrade may begin at once.
      const limit = AbortSignal.any([tasks.work.signal, AbortSignal.timeout(releaseLimitMs)]);
      await orAborted(lock.result(), limit).catch(() => {});
    }
  });
}

/** Resolves once the lock is held. The command that holds it has no limit, because an upgrade may take hours. */
async function untilHeld(
  { clock, signal }: LockWork,
  held: Promise<void>,
  { firstMaster }: LockRequest,
): Promise<void> {
  const over = new AbortController();
  const giveUp = async (): Promise<never> => {
    await clock.sleep(answerLimitMs, AbortSignal.any([signal, over.signal]));
    throw notAnswered(firstMaster);
  };
  try {
    await Promise.race([orAborted(held, signal), giveUp()]);
  } finally {
    over.abort(new Error("The lock is held."));
  }
}

function notAnswered(node: NodeRecord): ClusterError {
  const reference = nodeReference(node);
  const why = `it did not answer within ${answerLimitMs / 60_000} minutes`;
  return new ClusterError(
    "remote-command-failed",
    `${reference}: cannot keep other upgrades from running: ${why}.`,
    {
      facts: { node: reference },
    },
  );
}

/** Resolves soon after it is done. */
async function hold(
  { connections, clock, signal }: LockWork,
  { cluster, firstMaster }: LockRequest,
  { onHeld, done }: { readonly onHeld: () => void; readonly done: AbortSignal },
): Promise<void> {
  const owner = randomUUID();
  const state = { wasHeld: false };
  const onOutput = (_stream: string, chunk: string): void => {
    if (chunk !== "held\n") return;
    state.wasHeld = true;
    onHeld();
  };
  const attempt = async (inner: AbortSignal): Promise<void> => {
    const connection = await connections.connect(firstMaster, inner);
    const argv = ["bash", "-c", lockScript, "e2e-upgrade-lock", owner];
    const result = await connection.run(
      { argv, sudo: true, stdin: beats(clock, done, inner), onOutput },
      inner,
    );
    if (!done.aborted) throw notHeld(cluster, firstMaster, result);
  };
  const tolerates = ({ transient }: ClusterError): boolean =>
    transient && state.wasHeld && !done.aborted;
  try {
    await retry(attempt, { ...ruleOf(waits.upgradeLock, clock), tolerates }, signal);
  } catch (error) {
    if (!done.aborted) throw error;
  }
}

async function* beats(
  clock: Clock,
  done: AbortSignal,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const either = AbortSignal.any([done, signal]);
  while (!either.aborted) {
    yield Buffer.from("\n");
    await clock.sleep(beatMs, either).catch(() => {});
  }
}

function notHeld(
  { id }: LockRequest["cluster"],
  node: NodeRecord,
  result: RemoteResult,
): ClusterError {
  const reference = nodeReference(node);
  if (result.status !== taken) {
    return new ClusterError(
      "remote-command-failed",
      `${reference}: cannot keep other upgrades from running: ${reasonOf(result)}.`,
      { facts: { node: reference, status: result.status }, transient: result.status === 0 },
    );
  }
  const since = /^since [\d:]{8} UTC$/m.exec(result.stdout)?.[0];
  return new ClusterError(
    "cluster-busy",
    `Another upgrade of cluster "${id}" is running${since === undefined ? "" : `, ${since}`}.`,
    {
      hint: `Run the command again when it has ended. If its computer is cut off, that counts as its end after ${silentSeconds} s.`,
      facts: { cluster: id, node: reference },
    },
  );
}
