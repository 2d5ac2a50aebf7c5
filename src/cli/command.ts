import type { Clock, Progress } from "../system/runtime.ts";
import type { Arguments, Habits, Invocation, Options, ValuesOf } from "./options/option.ts";
import type { NameFlags, Problems } from "./options/problems.ts";
import type { Colours } from "./terminal/colours.ts";

/** The input of `run`: the values of arguments and options in one object. */
type Input<Positionals, Declared> = ValuesOf<Positionals> & ValuesOf<Declared>;

/** The input of `check`. A missing or invalid value is absent, and its problem has already been noted. */
type Given<Positionals, Declared> = Partial<Input<Positionals, Declared>>;

interface Example {
  /** Without the program's name: `create --variant oss ./artifact.sh`. */
  readonly words: string;
  readonly summary: string;
}

export interface Command<
  Positionals extends Arguments = Arguments,
  Declared extends Options = Options,
> {
  readonly name: string;
  /** One line without a full stop, such as "Wait until the platform is ready". */
  readonly summary: string;
  /** Paragraphs, separated by empty lines, after the summary. Wrapped to the terminal. */
  readonly description: string;
  readonly positionals: Positionals;
  /**
   * Every command also has `--help` and `-h`. The names `output` and `verbose` are reserved for the
   * options of value-types.ts.
   */
  readonly options: Declared;
  readonly examples: readonly Example[];
  /**
   * Checks several values together, or files of which only some may be read. Runs even if the
   * command line already has problems, so that all are reported together. `run` is called only if
   * there are none.
   */
  check?(
    given: Given<Positionals, Declared>,
    problems: Problems,
    context: Context,
  ): void | Promise<void>;
  /** Resolves with the exit code if it isn't 0. */
  run(input: Input<Positionals, Declared>, context: Context): Promise<number | void>;
}

export interface Program {
  /** The name as users type it: `cluster-cloud`. */
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly Command[];
  /** Why this program lacks a command that other programs have, by the command's name. */
  readonly missingCommands?: ReadonlyMap<string, string>;
  readonly habits?: () => Promise<Habits>;
  /** The text that `--licenses` prints. */
  readonly licenses: () => Promise<string>;
}

/**
 * Declares a command. All types follow from the declaration. It is loaded at every start of the
 * program, so import the modules that do the work inside `run`:
 *
 * ```ts
 * export const wait = defineCommand({
 *   name: "wait",
 *   summary: "Wait until the platform is ready",
 *   description: "",
 *   options: { clusterId, timeout: option(duration, { flag: "--timeout", summary: "…", default:
 * 3_600_000, defaultText: "60m" }), verbose },
 *   examples: [{ words: "wait --timeout 15m", summary: "…" }],
 *   check: (given, problems) => { if (given.timeout === 1) problems.add("--timeout: too short"); },
 *   run: async (input, context) => {
 *     const { waitForCluster } = await import("../platform/readiness/readiness.ts");
 *     await waitForCluster(input.clusterId, input.timeout, context.signal);
 *   },
 * });
 * ```
 *
 * If `run` is in a separate file, declare the options as a constant first and type its parameter
 * `ValuesOf<typeof options>`. A type derived from the command itself would be circular.
 */
export function defineCommand<
  const Declared extends Options,
  const Positionals extends Arguments = {},
>(
  command: Omit<Command<Positionals, Declared>, "positionals"> & {
    readonly positionals?: Positionals;
  },
): Command<Positionals, Declared> {
  return { positionals: {} as Positionals, ...command };
}

/** Everything a command may use of the process it runs in. */
export interface Context extends Invocation {
  /** The command line without the program, which may hold secrets. */
  readonly words?: readonly string[];
  readonly programName: string;
  /** The path of this program's executable, for programs that it starts. */
  readonly programPath: string;
  /**
   * Replaces neutral option names with flags in texts from lower layers. Errors and progress
   * messages are converted automatically.
   */
  readonly nameFlags: NameFlags;
  readonly clock: Clock;
  /** Names of the variables that control Bun itself and were set at the start. They aren't in `environment`. */
  readonly runtimeVariables: readonly string[];
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP. Its reason is an `Interrupted`. */
  readonly signal: AbortSignal;
  /** Reports on stderr while the command runs. */
  readonly progress: Progress;
  /** The only way to stdout. */
  readonly output: Output;
  readonly stdin: Answers;
  /** The width of stdout, for tables. */
  readonly columns: number;
  readonly isTerminal: {
    readonly stdin: boolean;
    readonly stdout: boolean;
    readonly stderr: boolean;
  };
  /** The number of times `-v` was given. */
  readonly verbosity: number;
  /** The log of this run, once it has a file. */
  readonly logPath: () => string | undefined;
  /**
   * Removes variables from the process itself, for a program that is started by a package and
   * inherits all of them. `environment` keeps them.
   */
  dropVariables(isNeeded: (name: string) => boolean): void;
  /**
   * Registers a description that a second interrupt prints just before the program exits at once:
   * what is left behind, and when it ends by itself. An empty text prints nothing. Dispose of it
   * once nothing would be left behind.
   */
  onAbandon(describe: () => string): Disposable;
  /** From now on any failure, including a bug, ends the program with this exit code (`run` after connecting: 255). */
  failuresExitWith(exitCode: number): void;
}

export interface Output {
  /** The value of `--output`, or "text" if the command has no such option. */
  readonly format: string;
  /** Whether stdout no longer accepts anything, such as in `| head -1`. */
  readonly isClosed: boolean;
  /**
   * Sets the command's result; call it once. Text is written at once: a missing final newline is
   * added, and an empty text writes nothing. JSON is written when the command has ended, with
   * `schemaVersion`, and with `error` if the command failed after all.
   */
  result(result: Result): void;
  /**
   * Writes one line of a source's output, behind the source's name if there are several, unless the
   * format is JSON. The line is masked and made printable. Returns a promise if the reader is slow:
   * then wait for it.
   */
  line(stream: "stdout" | "stderr", source: Source | undefined, line: string): void | Promise<void>;
}

export interface Source {
  readonly name: string;
  readonly index: number;
}

export interface Result {
  /** The text for people and pipes, written to stdout in every format except "json". */
  readonly text: string;
  /**
   * Keys are camelCase. Dates become ISO texts; absent and undefined members are left out. Absent
   * if the command has no JSON output.
   */
  readonly data?: Readonly<Record<string, unknown>>;
  /** Whether JSON too is written before the command ends. It then lacks an error that comes later. */
  readonly isAtOnce?: true;
  /** Paints a line of the text, on a terminal. */
  readonly paint?: (line: string, colours: Colours) => string;
}

export interface Answers {
  /** Asks a yes-or-no question. Anything except yes means no, as does the end of stdin. Use it only on a terminal. */
  confirm(question: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Reads a secret that the user gives as "-". On a terminal it asks without showing the input.
   * Otherwise it reads one line of stdin and leaves the rest to the next reader. The answer is
   * hidden (`Progress.hide`) before it is returned. Throws `bad-usage` if stdin ends before a line
   * begins.
   */
  readSecret(prompt: string, signal: AbortSignal): Promise<string>;
}

export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly signalName: "SIGINT" | "SIGTERM" | "SIGHUP";

  constructor(signalName: "SIGINT" | "SIGTERM" | "SIGHUP") {
    super(`Interrupted by ${signalName}`);
    this.signalName = signalName;
  }
}

/**
 * The parts of the process that the program uses. bin passes them in, so that nothing else uses the
 * global. Its streams are no part: merely touching them changes them for other programs; see
 * `openOutput`.
 */
export type ProcessLike = Pick<
  NodeJS.Process,
  "argv" | "env" | "cwd" | "pid" | "kill" | "on" | "off" | "execPath"
> & {
  exitCode?: number | string | null | undefined;
  /** Node's own parts, by name. */
  binding?(name: "tty_wrap"): {
    isTTY?(descriptor: number): boolean;
    readonly TTY?: new (descriptor: number) => {
      getWindowSize(size: [columns: number, rows: number]): unknown;
    };
  };
};
