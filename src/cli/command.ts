import type { Context } from "./context.ts";
import type { Arguments, Options, ValuesOf } from "./options/option.ts";
import type { Problems } from "./options/problems.ts";

/** What `run` receives: the values of arguments and options in one object. */
type Input<Positionals, Declared> = ValuesOf<Positionals> & ValuesOf<Declared>;

/** What `check` receives: a value that was missing or wrong is absent; its problem has been noted already. */
type Given<Positionals, Declared> = Partial<Input<Positionals, Declared>>;

interface Example {
  /** Without the program's name: `create --variant oss ./artifact.sh`. */
  readonly words: string;
  readonly summary: string;
}

export interface Command<Positionals extends Arguments = Arguments, Declared extends Options = Options> {
  readonly name: string;
  /** One line without a full stop, such as "Waits for the cluster software to start". */
  readonly summary: string;
  /** Paragraphs, separated by empty lines, after the summary. Wrapped to the terminal. */
  readonly description: string;
  readonly positionals: Positionals;
  /** Every command has `--help` and `-h` besides. An option under the name `output` or `verbose` is one of shared-options.ts. */
  readonly options: Declared;
  readonly examples: readonly Example[];
  /**
   * Checks that look at several values, or at files only some of which may be read. Runs even if the command line has problems already,
   * so that all are reported together; `run` is called only if there is none.
   */
  check?(given: Given<Positionals, Declared>, problems: Problems, context: Context): void | Promise<void>;
  /** Resolves with the exit code where that isn't 0. */
  run(input: Input<Positionals, Declared>, context: Context): Promise<number | void>;
}

export interface Program {
  /** As people type it: `cluster-cloud`. */
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly Command[];
  /** What `--licenses` prints. */
  readonly licenses: () => Promise<string>;
}

/**
 * Declares a command with everything typed from its declaration. The declaration is loaded at every start of the program, so what the work
 * needs is imported inside `run`:
 *
 * ```ts
 * export const wait = defineCommand({
 *   name: "wait",
 *   summary: "Waits for the cluster software to start",
 *   description: "",
 *   positionals: {},
 *   options: { clusterId, timeout: option(duration, { flag: "--timeout", summary: "…", default: 3_600_000, defaultText: "60m" }), verbose },
 *   examples: [{ words: "wait --timeout 15m", summary: "…" }],
 *   check: (given, problems) => { if (given.timeout === 1) problems.add("--timeout: too short"); },
 *   run: async (input, context) => {
 *     const { waitForCluster } = await import("../platform/readiness.ts");
 *     await waitForCluster(input.clusterId, input.timeout, context.signal);
 *   },
 * });
 * ```
 *
 * Where `run` lives in a file of its own, name the options as a constant first and type its parameter `ValuesOf<typeof options>`; a type
 * taken from the command itself would be a circle.
 */
export function defineCommand<const Positionals extends Arguments, const Declared extends Options>(
  command: Command<Positionals, Declared>,
): Command<Positionals, Declared> {
  return command;
}
