/** How the program says what it does. The terminal implements it; the library's default says nothing. */
export interface Progress {
  /** Begins a step of work, such as ("Prepare", "master_0"). Its time is kept for the summary. */
  start(title: string, subject?: string): Step;
  /** What is waited for now. Live on a terminal; elsewhere one line per change, never per poll. */
  waiting(text: string): void;
  /** A line that is always shown (on stderr). */
  note(text: string): void;
  warn(text: string): void;
  /** 1: steps and timings. 2: API calls with request ids, remote commands. 3: remote output as well. */
  detail(level: 1 | 2 | 3, text: string): void;
  /** From now on this value is masked in everything that is printed or logged. */
  hide(secret: string): void;
  /** The text with every hidden value masked, for what is written elsewhere. */
  mask(text: string): string;
  /** From now on everything, at full detail and masked, also goes to this file (0600). */
  logTo(path: string): void;
  /** Milliseconds from the first start to the last end of the steps of each title, in order of their first start. */
  timings(): readonly { readonly title: string; readonly ms: number }[];
}

/** A step under way. Disposing of it without `done` marks it failed. */
export interface Step extends Disposable {
  /** Replaces what is shown beside the step, such as "42 of 310 MB". */
  update(text: string): void;
  done(text?: string): void;
}

const silentStep: Step = { update: () => {}, done: () => {}, [Symbol.dispose]: () => {} };

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
