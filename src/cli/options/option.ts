import type { Environment } from "../../system/environment.ts";

/** How the program was started: what a value may be read against before a command has its whole context. */
export interface Invocation {
  readonly cwd: string;
  readonly environment: Environment;
}

/** Thrown by a value type: the text is not usable. The message goes on after "--flag: ", such as `"x" is no whole number`. */
export class BadValue extends Error {
  override readonly name = "BadValue";
}

/** How one text of the command line becomes one value. Made by the functions of value-types.ts. */
export interface ValueType<Single> {
  /** Throws `BadValue`. May read files: problems found so are reported together with all others of the command line. */
  readonly parse: (text: string, invocation: Invocation) => Single | Promise<Single>;
  /** Every text that is accepted, where they can be counted. Shown in the help and offered by completion. */
  readonly choices?: readonly string[];
  /** What completion offers. */
  readonly completes?: "file" | "directory";
}

interface Traits<Single> {
  readonly summary: string;
  readonly required?: boolean;
  readonly default?: Single;
  /** A default that depends on where the program was started. */
  readonly defaultFrom?: (invocation: Invocation) => Single;
  /** How the help writes the default; without it the default itself is written where it is a text or a number. */
  readonly defaultText?: string;
  /** Variable that is read when the command line gives no value; an empty variable counts as unset. */
  readonly environment?: string;
  /** The value is masked in everything that is printed or logged. "-" alone (read from stdin) is not. */
  readonly secret?: boolean;
  /** Words after the program's name; each line that they print on stdout is offered by completion. */
  readonly completeWith?: readonly string[];
}

interface OptionTraits<Single> extends Traits<Single> {
  readonly flag: `--${string}`;
  readonly short?: `-${string}`;
  /** Without it: the flag's name as `<flag_name>`. */
  readonly placeholder?: string;
  readonly repeatable?: boolean;
}

interface ArgumentTraits<Single> extends Traits<Single> {
  /** As the help writes it, such as `ARTIFACT_URL`. */
  readonly name: string;
}

/** `flag`: given or not. `count`: how often it was given. */
type OptionKind = "value" | "flag" | "count";

/** One declared option. `Value` is what commands receive. */
export interface Option<Value = unknown> extends OptionTraits<unknown> {
  readonly kind: OptionKind;
  readonly type: ValueType<unknown>;
  /** Never set; carries the type. */
  carry?(value: Value): void;
}

/** One declared positional argument. With `rest`, options end at the first word, and all words from there on are the value. */
export interface Argument<Value = unknown> extends ArgumentTraits<unknown> {
  readonly rest: boolean;
  readonly type: ValueType<unknown>;
  /** Never set; carries the type. */
  carry?(value: Value): void;
}

export type Options = Readonly<Record<string, Option>>;
/** In the order of the command line. */
export type Arguments = Readonly<Record<string, Argument>>;

/** The values of declared options and arguments, under the names that the declaring object gives them. */
export type ValuesOf<Declared> = {
  readonly [Name in keyof Declared]: Declared[Name] extends Option<infer Value> | Argument<infer Value> ? Value : never;
};

type Presence<Single, Given> = Given extends { readonly repeatable: true }
  ? readonly Single[]
  : Given extends { readonly required: true } | { readonly default: unknown } | { readonly defaultFrom: unknown }
    ? Single
    : Single | undefined;

/**
 * An option with a value: `option(count({ minimum: 1, maximum: 9 }), { flag: "--masters", summary: "…", default: 1 })`.
 * Its value is `Single` when required or with a default, `readonly Single[]` when repeatable (empty when absent), else maybe undefined.
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
  return { ...traits, type, rest: false };
}

/** The last positional: one word or more, passed on as they are, options of somebody else's included (`NODE_ARGS...`). */
export function restArgument(traits: Pick<ArgumentTraits<string>, "name" | "summary">): Argument<readonly string[]> {
  return { ...traits, required: true, rest: true, type: plainText };
}

/** An option without a value: true when given. */
export function flag(traits: Pick<OptionTraits<boolean>, "flag" | "short" | "summary">): Option<boolean> {
  return { ...traits, kind: "flag", type: plainText };
}

/** An option without a value that may repeat; its value is how often it was given (`-vv` is 2). */
export function counted(traits: Pick<OptionTraits<number>, "flag" | "short" | "summary">): Option<number> {
  return { ...traits, kind: "count", repeatable: true, type: plainText };
}

const plainText: ValueType<string> = { parse: (given) => given };
