import { ClusterError } from "../errors.ts";
import { endCreation } from "../system/creation-folder.ts";
import type { Progress } from "../system/progress.ts";
import { isClusterExists } from "./cluster-exists.ts";

const evidenceLimitMs = 20_000;
const limitMs = 9 * 60_000;

/** How a backend undoes a creation. */
export interface RollBack {
  readonly directory: string;
  /** Nothing has been asked for yet, so that there is nothing to undo. */
  readonly isUntouched: boolean;
  readonly keepOnFailure: boolean;
  saveEvidence(signal: AbortSignal): Promise<void>;
  /** Tells all machines to end. Done twice it does no harm. */
  end(signal: AbortSignal): Promise<void>;
  /** Removes all, after `end`. Resolves with a sentence about what is left, if anything is. */
  remove(signal: AbortSignal): Promise<string | undefined>;
  /** A sentence for people who wanted the machines kept. */
  keptText(): string;
  /** What may be left, and how it goes away, where the removal failed. */
  remainsText(): string;
}

/**
 * Removes what a creation has made, by signals of its own, since the creation's is perhaps aborted. After a failure evidence comes first; after
 * an interruption machines are told to end first, because whoever interrupts may kill seconds later. Never throws: what is left is told.
 */
export async function rollBack(
  work: RollBack,
  { error, progress }: { readonly error: unknown; readonly progress: Progress },
  signal: AbortSignal,
): Promise<void> {
  if (work.isUntouched) return await endCreation(work.directory, "removed");
  // Where the id turned out to be another creation's, nothing of this one is worth keeping or looking at.
  const isWorthless = isClusterExists(error);
  if (work.keepOnFailure && !isWorthless) return await keep(work, progress);
  const bound = AbortSignal.timeout(limitMs);
  const isInterrupted = signal.aborted && !(signal.reason instanceof ClusterError);
  using step = progress.start("Remove what was made");
  try {
    if (!isInterrupted && !isWorthless) await saveEvidence(work, progress);
    await work.end(bound);
    if (isInterrupted) await saveEvidence(work, progress);
    const text = await work.remove(bound);
    if (text !== undefined) return progress.warn(text);
    await endCreation(work.directory, "removed");
    step.done();
  } catch (problem) {
    const reason = problem instanceof Error ? problem.message : String(problem);
    progress.warn(`The removal failed: ${reason} ${work.remainsText()}`);
  }
}

async function keep(work: RollBack, progress: Progress): Promise<void> {
  await saveEvidence(work, progress);
  progress.note(`Kept, as asked: ${work.keptText()}`);
  await endCreation(work.directory, "finished");
}

/** Its failure must not keep anything from being removed. */
async function saveEvidence(work: RollBack, progress: Progress): Promise<void> {
  try {
    await work.saveEvidence(AbortSignal.timeout(evidenceLimitMs));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    progress.detail(1, `The evidence is incomplete: ${reason}`);
  }
}
