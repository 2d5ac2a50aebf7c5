import type { Progress, Step } from "../../src/system/runtime.ts";

const silentStep: Step = { update: () => {}, done: () => {}, [Symbol.dispose]: () => {} };

/** For tests that look at no progress. */
export const silentProgress: Progress = {
  start: () => silentStep,
  waiting: () => {},
  note: () => {},
  warn: () => {},
  detail: () => {},
  hide: () => {},
  mask: (text) => text,
  logTo: () => {},
  timings: () => [],
};
