import { unmarked } from "../../src/outside-text.ts";
import type { Progress } from "../../src/system/runtime.ts";
import { silentProgress } from "./silent-progress.ts";

export interface RecordingProgress {
  readonly progress: Progress;
  /** How each step ended, in order: `Launch: done`, or `Launch: failed` for one that was disposed of before. */
  readonly steps: string[];
  /** The texts beside all steps, in order. */
  readonly updates: string[];
  /** Notes, warnings and details, in order. */
  readonly told: string[];
}

/** A progress that keeps what it is given. */
export function recordingProgress(): RecordingProgress {
  const [steps, updates, told]: [string[], string[], string[]] = [[], [], []];
  const start: Progress["start"] = (title, subject) => {
    const name = subject === undefined ? title : `${title} ${subject}`;
    const state = { isOver: false };
    const end = (outcome: string): void => {
      if (!state.isOver) steps.push(unmarked(`${name}: ${outcome}`));
      state.isOver = true;
    };
    const update = (text: string): void => void updates.push(unmarked(text));
    return { update, done: (text = "done") => end(text), [Symbol.dispose]: () => end("failed") };
  };
  const keep = (text: string): void => void told.push(unmarked(text));
  return {
    steps,
    updates,
    told,
    progress: {
      ...silentProgress,
      start,
      note: keep,
      warn: keep,
      detail: (_level, text) => keep(text),
    },
  };
}
