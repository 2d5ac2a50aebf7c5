import { setTimeout as wait } from "node:timers/promises";

/** The parts of the running program that all code for creating or using clusters receives. */
export interface Runtime {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly progress: Progress;
}

/** What work on clusters receives: the running program, and the signal that ends this part of its work. */
export interface Work extends Runtime {
  readonly signal: AbortSignal;
}

/** Returns the same work, which this limit ends too. */
export const endedBy = <Part extends Pick<Work, "signal">>(
  work: Part,
  limit: { readonly signal: AbortSignal },
): Part => ({ ...work, signal: AbortSignal.any([work.signal, limit.signal]) });

/** Environment variables by name, passed in from the edge. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface Clock {
  /** Milliseconds since 1970. Somebody may set it, as a service for the time does. */
  now(): number;
  /**
   * Milliseconds since some moment, which nobody can set. Whole, because Node takes no others as
   * time limits. Absent: as `now`.
   */
  readonly passed?: () => number;
  /** Resolves after `ms`. Rejects with the signal's reason as soon as it is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** For the length of waits. */
export const passedMs = ({ now, passed = now }: Clock): number => passed();

export const systemClock: Clock = {
  now: () => Date.now(),
  passed: () => Math.round(performance.now()),
  sleep: async (ms, signal) => {
    signal.throwIfAborted();
    try {
      await wait(ms, undefined, { signal });
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  },
};

/** How the program reports what it does. The terminal implements it; the library's default prints nothing. */
export interface Progress {
  /** Begins a step of work, such as ("Prepare", "master_0"). Its duration is kept for the summary. */
  start(title: string, subject?: string): Step;
  /** Shows what the program is waiting for: live on a terminal, and otherwise one line per change, never per poll. */
  waiting(text: string): void;
  /** Prints a line to stderr at every verbosity. */
  note(text: string): void;
  warn(text: string): void;
  /** 1: steps and timings. 2: also API calls with request ids, and remote commands. 3: also remote output. */
  detail(level: 1 | 2 | 3, text: string): void;
  /** From now on this value is masked in everything that is printed or logged. */
  hide(secret: string): void;
  /** Returns the text with every hidden value masked, for output elsewhere. */
  mask(text: string): string;
  /**
   * From now on everything, at full detail and masked, also goes to this file (0600), and each
   * step, also those before, to the function.
   */
  logTo(path: string, onStep?: OnStep): void;
  /**
   * From now on nothing goes to that file, whose folder is about to be removed: some file systems,
   * such as NFS, keep a file under another name as long as it is open.
   */
  readonly closeLog?: () => void;
  /** Milliseconds from the first start to the last end of the steps of each title, in order of their first start. */
  timings(): readonly { readonly title: string; readonly ms: number }[];
}

/** The beginning or the end of a step, with its time in milliseconds since 1970. */
export interface StepChange {
  readonly title: string;
  readonly subject?: string | undefined;
  readonly course: "begun" | "done" | "failed";
  readonly text?: string;
  readonly atMs: number;
}

export type OnStep = (change: StepChange) => void;

const mostEarlySteps = 1000;

/** Hands the changes of steps to a function, and keeps those that come before there is one. */
export class StepChanges {
  readonly #early: StepChange[] = [];
  #onStep: OnStep | undefined;

  add(change: StepChange): void {
    if (this.#onStep !== undefined) this.#onStep(change);
    else if (this.#early.length < mostEarlySteps) this.#early.push(change);
  }

  sendTo(onStep: OnStep | undefined): void {
    this.#onStep = onStep ?? this.#onStep;
    if (this.#onStep !== undefined)
      for (const change of this.#early.splice(0)) this.#onStep(change);
  }
}

/** A step in progress. Disposing of it without `done` marks it failed. */
export interface Step extends Disposable {
  /** Replaces the text beside the step, such as "42 of 310 MB". */
  update(text: string): void;
  done(text?: string): void;
}
