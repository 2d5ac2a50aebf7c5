import { ClusterError, hasErrorId } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { type PollRule, poll } from "../../system/retry.ts";
import { passedMs } from "../../system/runtime.ts";
import { withinLimit } from "../../system/time-limit.ts";

/** Whether the command shall succeed, or fail. */
export interface Wanted {
  readonly fails: boolean;
  /** Whether the command runs on nodes, whose sessions end with 255 if they could not run it. */
  readonly isRemote: boolean;
}

/**
 * Whether the command has begun, as far as its status tells. Shells say 127 if they don't find it,
 * and 126 if they can't execute it.
 */
export const hasRun = (status: number, isRemote: boolean): boolean =>
  status !== 126 && status !== 127 && !(isRemote && status === 255);

export const isWanted = (status: number, { fails, isRemote }: Wanted): boolean =>
  fails ? status !== 0 && hasRun(status, isRemote) : status === 0;

/** The exit status for a command that ended with `status`. One that shall fail has none to pass on. */
export const wantedStatus = (status: number, wanted: Wanted): number => {
  if (!wanted.fails || !hasRun(status, wanted.isRemote)) return status;
  return isWanted(status, wanted) ? 0 : 1;
};

interface Repetition extends Pick<PollRule, "clock" | "shows"> {
  readonly limitMs: number;
}

const pauseMs = 1_000;

/**
 * Runs a command again and again, a second apart, until an attempt is done or the time is over. Resolves with the last
 * attempt that ended in time. If there is none, throws why nodes could not be reached, or `deadline-passed`.
 */
export async function runUntil<End extends { readonly isDone: boolean }>(
  attempt: (signal: AbortSignal) => Promise<End>,
  { limitMs, clock, shows }: Repetition,
  signal: AbortSignal,
): Promise<End> {
  const deadlineMs = clock.now() + limitMs;
  const endMs = passedMs(clock) + limitMs;
  const last: { end?: End } = {};
  const onLimit = (): End => {
    if (last.end !== undefined) return last.end;
    throw new ClusterError("deadline-passed", "The command did not end within its time limit.", {
      hint: `Allow more time with ${optionName("until")}.`,
    });
  };
  const look = async (inner: AbortSignal): Promise<End | undefined> => {
    const leftMs = Math.max(endMs - passedMs(clock), pauseMs);
    last.end = await withinLimit(leftMs, attempt, onLimit, inner);
    return last.end.isDone ? last.end : undefined;
  };
  const rule = {
    clock,
    deadlineMs,
    pauseMs: () => pauseMs,
    tolerates: (error: unknown) =>
      hasErrorId(error, "connection-failed") || hasErrorId(error, "node-stopped"),
    ...(shows !== undefined && { shows }),
  };
  return (await poll(look, rule, signal)) ?? onLimit();
}
