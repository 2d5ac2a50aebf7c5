import type { Clock } from "../system/clock.ts";
import type { Progress } from "../system/progress.ts";
import type { NameFlags } from "./options/flag-names.ts";
import type { Invocation } from "./options/option.ts";

/** Everything that a command may touch of the process it runs in. */
export interface Context extends Invocation {
  readonly programName: string;
  /** What the commands are told from below, with flags in place of neutral names of options. Errors and progress have it done for them. */
  readonly nameFlags: NameFlags;
  readonly clock: Clock;
  /** Names of the variables that steer Bun itself and were set at the start. They aren't in `environment`. */
  readonly runtimeVariables: readonly string[];
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP, with an `Interrupted` as its reason. */
  readonly signal: AbortSignal;
  /** Everything that people are told while the command runs; on stderr. */
  readonly progress: Progress;
  /** The only way to stdout. */
  readonly output: Output;
  readonly stdin: Answers;
  readonly isTerminal: { readonly stdin: boolean; readonly stdout: boolean; readonly stderr: boolean };
  /** How often `-v` was given. */
  readonly verbosity: number;
  /**
   * Registers what a second interrupt prints just before the program ends at once: what is left, and when it ends by itself. An empty
   * text prints nothing. Dispose of it when nothing would be left any more.
   */
  onAbandon(describe: () => string): Disposable;
  /** From now on any failure, bugs included, ends the program with this exit code (`run` after connecting: 255). */
  failuresExitWith(exitCode: number): void;
}

export interface Output {
  /** The value of `--output`; "text" where the command has no such option. */
  readonly format: string;
  /**
   * The command's result, given once. As text it is written at once (a missing final newline is added; an empty text writes nothing). As
   * JSON, the data is written when the command has ended, with `schemaVersion`, and with `error` when it failed after all.
   */
  result(result: Result): void;
}

export interface Result {
  /** For people and for pipes: what goes to stdout with any format but "json". */
  readonly text: string;
  /** camelCase keys; dates become ISO texts, absent and undefined members are left out. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** What people type while a command runs. */
export interface Answers {
  /** Asks for a yes or no. Anything but yes is no, the end of stdin too. For terminals only: elsewhere nobody can be asked. */
  confirm(question: string, signal: AbortSignal): Promise<boolean>;
  /**
   * A secret that a user gives as "-". Asks on a terminal without showing what is typed; otherwise reads one line of stdin and leaves what follows to the next reader.
   * The answer is hidden (`Progress.hide`) before it is returned. Throws `bad-usage` when stdin ends before a line begins.
   */
  readSecret(prompt: string, signal: AbortSignal): Promise<string>;
}

/** Why `Context.signal` was aborted. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly signalName: "SIGINT" | "SIGTERM" | "SIGHUP";

  constructor(signalName: "SIGINT" | "SIGTERM" | "SIGHUP") {
    super(`Interrupted by ${signalName}`);
    this.signalName = signalName;
  }
}
