import { type Clock, systemClock } from "../../src/system/runtime.ts";

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

/** Likewise, but somebody may set the time while it passes. */
export function settableClock() {
  const { sleep, now: passed } = scriptedClock();
  const set = { ms: 0 };
  const clock: Clock = { sleep, passed, now: () => passed() + set.ms };
  return { clock, set };
}

/** How many times as fast `fastClock` runs. */
const fastClockSpeed = 20;
/** For code that also waits for processes, whose time isn't the clock's. */
export const fastClock: Clock = {
  now: () => Date.now() * fastClockSpeed,
  sleep: async (ms, signal) => systemClock.sleep(ms / fastClockSpeed, signal),
};
