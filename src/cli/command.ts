import type { Context } from "./context.ts";
import type { Arguments, Options, ValuesOf } from "./options/option.ts";
import type { Problems } from "./options/problems.ts";

/** The input of `run`: the values of arguments and options in one object. */
type Input<Positionals, Declared> = ValuesOf<Positionals> & ValuesOf<Declared>;

/** The input of `check`. A missing or invalid value is absent, and its problem has already been noted. */
type Given<Positionals, Declared> = Partial<Input<Positionals, Declared>>;

interface Example {
  /** Without the program's name: `create --variant oss ./artifact.sh`. */
  readonly words: string;
  readonly summary: string;
}

export interface Command<Positionals extends Arguments = Arguments, Declared extends Options = Options> {
  readonly name: string;
  /** One line without a full stop, such as "Wait until the platform is ready". */
  readonly summary: string;
  /** Paragraphs, separated by empty lines, after the summary. Wrapped to the terminal. */
  readonly description: string;
  readonly positionals: Positionals;
  /** Every command also has `--help` and `-h`. The names `output` and `verbose` are reserved for the options of value-types.ts. */
  readonly options: Declared;
  readonly examples: readonly Example[];
  /**
   * Checks several values together, or files of which only some may be read. Runs even if the command line already has problems, so that all are
   * reported together. `run` is called only if there are none.
   */
  check?(given: Given<Positionals, Declared>, problems: Problems, context: Context): void | Promise<void>;
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
  /** The text that `--licenses` prints. */
  readonly licenses: () => Promise<string>;
}

/**
 * Declares a command. All types follow from the declaration. It is loaded at every start of the program, so import the modules that do
 * the work inside `run`:
 *
 * ```ts
 * export const wait = defineCommand({
 *   name: "wait",
 *   summary: "Wait until the platform is ready",
 *   description: "",
 *   positionals: {},
 *   options: { clusterId, timeout: option(duration, { flag: "--timeout", summary: "…", default: 3_600_000, defaultText: "60m" }), verbose },
 *   examples: [{ words: "wait --timeout 15m", summary: "…" }],
 *   check: (given, problems) => { if (given.timeout === 1) problems.add("--timeout: too short"); },
 *   run: async (input, context) => {
 *     const { waitForCluster } = await import("../platform/readiness/readiness.ts");
 *     await waitForCluster(input.clusterId, input.timeout, context.signal);
 *   },
 * });
 * ```
 *
 * If `run` is in a separate file, declare the options as a constant first and type its parameter `ValuesOf<typeof options>`. A type
 * derived from the command itself would be circular.
 */
export function defineCommand<const Positionals extends Arguments, const Declared extends Options>(
  command: Command<Positionals, Declared>,
): Command<Positionals, Declared> {
  return command;
}
