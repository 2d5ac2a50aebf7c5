import { rm } from "node:fs/promises";
import type { Runtime } from "../../system/runtime.ts";
import type { Creation } from "../../model/creation.ts";
import { ClusterError, hasErrorId, messageOf } from "../../errors.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { closeMasterConnections } from "../../ssh/session/master-connection.ts";
import { creationFiles, endCreation } from "../../system/files/creation-folder.ts";
import { retry } from "../../system/retry.ts";
import { timeLimit } from "../../system/time-limit.ts";

const logsLimitMs = 20_000;
const limitMs = 9 * 60_000;
const longestPauseMs = 15_000;

export interface FailedCreation {
  /** Undefined if the creation was not even planned. */
  readonly creation: Creation | undefined;
  /** The creation's folder on this machine. */
  readonly directory: string;
  readonly keepOnFailure: boolean;
  /** Saves logs that help explain the failure, in the folder. */
  readonly saveLogs: (cluster: ClusterRecord, signal: AbortSignal) => Promise<void>;
}

/**
 * Removes what a creation has made, with time limits of its own, because those of the creation are over. After a failure it saves the logs first.
 * After an interruption it tells the machines to end first, because the user may kill the program seconds later. Never throws: it reports what is
 * left and keeps the folder as it is, so that the next creation of this id on this machine removes the rest.
 */
export async function undoCreation(
  failed: FailedCreation,
  { error, isInterrupted }: { readonly error: unknown; readonly isInterrupted: boolean },
  runtime: Runtime,
): Promise<void> {
  const { creation, directory } = failed;
  // Somebody may have run a command on a node meanwhile.
  await closeMasterConnections(directory, runtime.environment);
  if (creation?.describeRemains() === undefined) return await forget(directory, "everything");
  const work = { ...failed, creation };
  // If the id belongs to somebody else's cluster, nothing of this creation is worth saving or inspecting.
  const isWorthless = hasErrorId(error, "cluster-exists");
  if (failed.keepOnFailure && !isWorthless) return await keep(work, runtime);
  using step = runtime.progress.start("Remove what was created");
  try {
    const left = await undo(work, { isInterrupted, isWorthless }, runtime);
    if (left === undefined) {
      await forget(directory, isWorthless ? "everything" : "the key");
      return step.done();
    }
    runtime.progress.warn(left);
  } catch (problem) {
    runtime.progress.warn(`The removal failed: ${messageOf(problem)} ${creation.describeRemains()}`);
  }
  // If this can't be written, the creation counts as abandoned once this process has ended.
  await endCreation(directory, "abandoned").catch(() => {});
}

type TouchedCreation = FailedCreation & { readonly creation: Creation };

async function undo(
  work: TouchedCreation,
  { isInterrupted, isWorthless }: { readonly isInterrupted: boolean; readonly isWorthless: boolean },
  runtime: Runtime,
): Promise<string | undefined> {
  const { creation } = work;
  using limit = timeLimit(limitMs, tooSlow());
  const stop = async (): Promise<void> =>
    retryTransient("to terminate the machines", async (signal) => creation.stop(signal), runtime, limit.signal);
  if (isInterrupted) {
    try {
      await stop();
    } finally {
      // Save the logs even if the machines can't be told to end.
      await saveLogs(work, runtime);
    }
  } else {
    if (!isWorthless) await saveLogs(work, runtime);
    await stop();
  }
  return await retryTransient("to remove the rest", async (signal) => creation.remove(signal), runtime, limit.signal);
}

/** Retries transient failures until the limit, and reports what it is waiting for. */
async function retryTransient<Result>(
  aim: string,
  task: (signal: AbortSignal) => Promise<Result>,
  { clock, progress }: Pick<Runtime, "clock" | "progress">,
  signal: AbortSignal,
): Promise<Result> {
  const pauseMs = (failures: number): number => Math.min(500 * 2 ** failures, longestPauseMs);
  const onFailure = (error: ClusterError): void => progress.waiting(`waiting ${aim}: ${messageOf(error)}`);
  try {
    return await retry(task, { clock, deadlineMs: clock.now() + limitMs, pauseMs, onFailure }, signal);
  } finally {
    progress.waiting("");
  }
}

async function keep(work: TouchedCreation, runtime: Runtime): Promise<void> {
  await saveLogs(work, runtime);
  runtime.progress.note(`Kept as requested: ${work.creation.describeKept()}`);
  await endCreation(work.directory, "finished");
}

/** Never throws, because a failure here must not prevent the removal. */
async function saveLogs({ creation, saveLogs: save }: TouchedCreation, { progress }: Runtime): Promise<void> {
  const signal = AbortSignal.timeout(logsLimitMs);
  try {
    await save(await creation.describe(signal), signal);
  } catch (error) {
    progress.detail(1, `The logs are incomplete: ${messageOf(error)}`);
  }
}

/** Nothing of the creation is left and its key no longer opens anything; logs are kept if there are any. */
async function forget(directory: string, what: "everything" | "the key"): Promise<void> {
  await endCreation(directory, "removed");
  await rm(what === "everything" ? directory : creationFiles(directory).privateKey, { recursive: true, force: true });
}

const tooSlow = (): ClusterError =>
  new ClusterError("deadline-passed", `It exceeded its limit of ${limitMs / 60_000} minutes.`);
