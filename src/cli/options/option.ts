import { OwnError } from "../../errors.ts";
import type { Environment } from "../../system/runtime.ts";

/** How the program was started. Values may be read against this before a command has its whole context. */
export interface Invocation {
  readonly cwd: string;
  readonly environment: Environment;
}

/**
 * The signal for reading the command line's files. Nothing aborts it: until all options are read,
 * there is nothing to clean up, so an interrupt ends the program at once.
 */
export const whileOptionsAreRead = (): AbortSignal => new AbortController().signal;

/**
 * Thrown by a value type if the text is not usable. Each problem continues after "--flag: ", such
 * as `"x" is not a whole number`.
 */
export class BadValue extends OwnError {
  override readonly name = "BadValue";
  readonly problems: readonly string[];

  constructor(...problems: readonly string[]) {
    super(problems.join("; "));
    this.problems = problems;
  }
}

/** Converts one text of the command line to one value. Made by the functions of value-types.ts. */
export interface ValueType<Single> {
  /**
   * Throws `BadValue`. May read files; the problems found in them are reported together with all
   * others of the command line.
   */
  readonly parse: (text: string, invocation: Invocation) => Single | Promise<Single>;
  /** Every accepted text, if there is a fixed list. Shown in the help and offered by completion. */
  readonly choices?: readonly string[];
  /**
   * Some of the accepted texts, which completion offers beside those of a command, or as soon as
   * one of them has been begun.
   */
  readonly offers?: readonly string[];
  /** The kind of path that completion offers. */
  readonly completes?: "file" | "directory";
  /** The parts of a value that are masked from then on. */
  secretsIn?(value: Single): readonly string[];
}

interface Traits<Single> {
  readonly summary: string;
  readonly required?: boolean;
  readonly default?: Single;
  /** A default that depends on where the program was started. */
  readonly defaultFrom?: (invocation: Invocation) => Single;
  /** The default as the help shows it. If absent, the help shows the default itself if it is a text or a number. */
  readonly defaultText?: string;
  /** The variable to read if the command line gives no value. An empty variable counts as unset. */
  readonly environment?: string;
  /** The value is masked in everything that is printed or logged, except a plain "-" (read from stdin). */
  readonly secret?: boolean;
  /** Words after the program's name. Completion offers each line that this command prints to stdout. */
  readonly completeWith?: readonly string[];
}

interface OptionTraits<Single> extends Traits<Single> {
  readonly flag: `--${string}`;
  readonly short?: `-${string}`;
  /** If absent: the flag's name as `<flag_name>`. */
  readonly placeholder?: string;
  readonly repeatable?: boolean;
  /**
   * The options and arguments, by their declared names, that this option makes unnecessary: they
   * may not be given together, and have no value.
   */
  readonly replaces?: readonly string[];
  /**
   * Whether a hint to run another command that has this option repeats its value, as does
   * completion when it asks another command.
   */
  readonly isRepeated?: boolean;
}

interface ArgumentTraits<Single> extends Traits<Single> {
  /** The name as the help shows it, such as `ARTIFACT_URL`. */
  readonly name: string;
}

export interface Option<Value = unknown> extends OptionTraits<unknown> {
  /** `flag`: whether it was given. `count`: how often it was given. */
  readonly kind: "value" | "flag" | "count";
  readonly type: ValueType<unknown>;
  /** Never set; carries the type. */
  carry?(value: Value): void;
}

export interface Argument<Value = unknown> extends ArgumentTraits<unknown> {
  /**
   * `values`: all words from there on form the value, and options may stand between them. `words`:
   * options end at the first word. `after-dashes`: all words after the first `--` form it. Absent:
   * one word.
   */
  readonly rest?: "values" | "words" | "after-dashes";
  readonly type: ValueType<unknown>;
  /** Never set; carries the type. */
  carry?(value: Value): void;
}

export type Options = Readonly<Record<string, Option>>;
/** In the order of the command line. */
export type Arguments = Readonly<Record<string, Argument>>;

export type ValuesOf<Declared> = {
  readonly [Name in keyof Declared]: Declared[Name] extends
    | Option<infer Value>
    | Argument<infer Value>
    ? Value
    : never;
};

type Presence<Single, Given> = Given extends { readonly repeatable: true }
  ? readonly Single[]
  : Given extends
        | { readonly required: true }
        | { readonly default: unknown }
        | { readonly defaultFrom: unknown }
    ? Single
    : Single | undefined;

/**
 * An option with a value: `option(count(1, 9), { flag: "--masters", summary: "…", default: 1 })`.
 * Its value is `Single` if it is required or has a default, `readonly Single[]` if it is repeatable
 * (empty if absent), and otherwise may be undefined.
 */
export function option<Single, const Given extends OptionTraits<Single>>(
  type: ValueType<Single>,
  traits: Given,
): Option<Presence<Single, Given>> {
  return { ...traits, kind: "value", type };
}

/** A positional argument: `argument(text, { name: "ARTIFACT_URL", summary: "…", required: true })`. */
export function argument<Single, const Given extends ArgumentTraits<Single>>(
  type: ValueType<Single>,
  traits: Given,
): Argument<Presence<Single, Given>> {
  return { ...traits, type };
}

/**
 * The last positional: one or more words, passed on unchanged, including another program's options (`NODE_ARGS...`). A
 * command that also has other arguments takes the words after `--`; then the name in the help begins with the dashes.
 */
export function wordsArgument(
  rest: "words" | "after-dashes",
  traits: Pick<ArgumentTraits<string>, "name" | "summary">,
): Argument<readonly string[]> {
  return { ...traits, required: true, rest, type: plainText };
}

/** The last positional: one or more values; any number if it is not required. */
export function listArgument<Single>(
  type: ValueType<Single>,
  traits: Pick<ArgumentTraits<Single>, "name" | "summary" | "completeWith" | "required">,
): Argument<readonly Single[]> {
  return { required: true, ...traits, rest: "values", type };
}

/** An option without a value: true if given. */
export function flag(
  traits: Pick<OptionTraits<boolean>, "flag" | "short" | "summary">,
): Option<boolean> {
  return { ...traits, kind: "flag", type: plainText };
}

/** An option without a value that may be repeated. Its value is the number of times it was given (`-vv` is 2). */
export function counted(
  traits: Pick<OptionTraits<number>, "flag" | "short" | "summary">,
): Option<number> {
  return { ...traits, kind: "count", repeatable: true, type: plainText };
}

const plainText: ValueType<string> = { parse: (given) => given };

/** Words that this program accepts, or explains, because other programs have them. The help doesn't mention them. */
export interface Habits {
  /**
   * Other names of commands, of actions (`snapshot ls`) and of the program's options, with what
   * they may stand for. The first one that exists applies.
   */
  readonly words: ReadonlyMap<string, readonly string[]>;
  /** Other ways to write an option, by the word: `-o` is `--output`, and `--json` is `--output=json`. */
  readonly options: ReadonlyMap<string, string>;
  /** The option that the only argument of a command without arguments stands for: `inspect demo`. */
  readonly argument: `--${string}`;
  /** Options that don't exist, with the options to suggest instead. */
  readonly meant: ReadonlyMap<string, readonly string[]>;
  /** Advice by the name of a command that doesn't exist, or the problem by a command and an option (`run -i`). */
  readonly hints: ReadonlyMap<string, string>;
}

/** Returns the option of this command that replaces the option or argument with this declared name, if there is one. */
export const replacementOf = (
  { options }: { readonly options: Options },
  name: string,
): Option | undefined =>
  Object.values(options).find(({ replaces }) => replaces?.includes(name) === true);
