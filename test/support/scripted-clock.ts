import type { Clock } from "../../src/system/runtime.ts";

/** A clock whose time passes only while somebody sleeps, and then at once. */
export interface ScriptedClock extends Clock {
  /** Tests may change it, as if work had taken time. */
  nowMs: number;
  /** The requested pauses, in order. */
  readonly pauses: readonly number[];
}

export function scriptedClock(startMs = 0): ScriptedClock {
  const pauses: number[] = [];
  const clock: ScriptedClock = {
    nowMs: startMs,
    pauses,
    now: () => clock.nowMs,
    sleep: async (ms, signal) => {
      signal.throwIfAborted();
      pauses.push(ms);
      clock.nowMs += ms;
    },
  };
  return clock;
}
