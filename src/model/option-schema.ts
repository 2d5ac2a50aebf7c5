import { ClusterError, quoted, messageOf } from "../errors.ts";
import { optionName } from "../references.ts";
import { type Checked, badUsage } from "./checked.ts";
import {
  type Shape,
  anyText,
  flag,
  listOf,
  optional,
  readArguments,
  textOrNumber,
} from "./read-arguments.ts";

/** An option of one backend, declared once for both the command line and the library. */
export interface BackendOption<Value = unknown> {
  readonly summary: string;
  /** Absent: `--` and the option's name. */
  readonly flag?: `--${string}`;
  /** Whether it selects the scope in which to look for clusters, such as a region. Every command that finds clusters has it. */
  readonly isScope?: true;
  /** Whether its value names something on this computer that a file with the cluster doesn't contain. */
  readonly isLocal?: true;
  readonly placeholder?: string;
  readonly default?: Value;
  /** The default as the help shows it. */
  readonly defaultText?: string;
  readonly repeatable?: true;
  /** In the library, it may be a number as well. */
  readonly isNumeric?: true;
  /** On the command line, it takes no value: `read` gets "true" if it is given. */
  readonly isFlag?: true;
  readonly choices?: readonly string[];
  readonly completes?: "file" | "directory";
  /** Converts a text to its value. Throws `bad-usage` with a sentence that continues after the option's name. */
  readonly read: (text: string) => Value;
}

/** Options by name. The library and its errors use these names. */
export type OptionSchema = Readonly<Record<string, BackendOption>>;

type Single<Option> = Option extends { readonly read: (text: string) => infer Value }
  ? Value
  : never;

export type SchemaValues<Schema> = {
  readonly [Name in keyof Schema]: Schema[Name] extends { readonly repeatable: true }
    ? readonly Single<Schema[Name]>[]
    : Schema[Name] extends { readonly default: unknown }
      ? Single<Schema[Name]>
      : Single<Schema[Name]> | undefined;
};

export type ScopeValues<Schema> = SchemaValues<{
  readonly [
    Name in keyof Schema as Schema[Name] extends { readonly isScope: true } ? Name : never
  ]: Schema[Name];
}>;

type LibraryValue<Option> = Option extends { readonly isFlag: true }
  ? boolean
  : Option extends { readonly isNumeric: true }
    ? string | number
    : Single<Option> extends string
      ? Single<Option>
      : string;

/** The options of the library that follow from a schema. Each is described by its `summary`, and has its `default` or `defaultText`. */
export type LibraryOptions<Schema> = {
  readonly [Name in keyof Schema]?: Schema[Name] extends { readonly repeatable: true }
    ? readonly LibraryValue<Schema[Name]>[]
    : LibraryValue<Schema[Name]>;
};

/** Checks the types of the library's options at run time, then reads them. Throws `bad-usage`. */
export function readLibraryOptions<Schema extends OptionSchema, Options>(
  schema: Schema,
  given: LibraryOptions<Schema>,
  parse: (values: Partial<SchemaValues<Schema>>) => Checked<Options>,
): { readonly values: SchemaValues<Schema>; readonly options: Options } {
  const checkOf = (option: BackendOption) => {
    if (option.isFlag === true) return flag;
    if (option.repeatable === true) return listOf(anyText);
    return option.isNumeric === true ? textOrNumber : anyText;
  };
  const shape = Object.fromEntries(
    Object.entries(schema).map(([name, option]) => [name, optional(checkOf(option))]),
  ) as Shape<LibraryOptions<Schema>>;
  return readOptions(schema, readArguments(given, shape), parse);
}

/** Returns the values with the defaults of those that are absent. */
export const withDefaults = <Schema extends OptionSchema>(
  schema: Schema,
  values: Partial<SchemaValues<Schema>>,
): SchemaValues<Schema> =>
  Object.fromEntries(
    Object.entries(schema).map(([name, option]) => [
      name,
      values[name as keyof Schema] ?? (option.repeatable === true ? [] : option.default),
    ]),
  ) as SchemaValues<Schema>;

type Given<Schema> = {
  readonly [Name in keyof Schema]?: string | number | boolean | readonly string[] | undefined;
};

/**
 * Reads and checks the options that a program passes, like those of a command line. Throws `bad-usage` with every problem. `parse` checks
 * several values together; a value that was invalid by itself is absent.
 */
export function readOptions<Schema extends OptionSchema, Options>(
  schema: Schema,
  given: Given<Schema>,
  parse: (values: Partial<SchemaValues<Schema>>) => Checked<Options>,
): { readonly values: SchemaValues<Schema>; readonly options: Options } {
  const problems: string[] = [];
  const values = Object.entries(schema).map(([name, option]) => {
    const texts = [given[name] ?? []].flat().map(String);
    const read = texts.flatMap((text) =>
      readText(option, text, (problem) => problems.push(`${optionName(name)}: ${problem}`)),
    );
    if (read.length < texts.length) return [name, undefined];
    return [
      name,
      option.repeatable === true ? read : texts.length === 0 ? option.default : read[0],
    ];
  });
  const together = Object.fromEntries(values) as SchemaValues<Schema>;
  const outcome = parse(together);
  problems.push(...(outcome.problems ?? []));
  if (outcome.problems !== undefined || problems.length > 0) throw badUsage(problems);
  return { values: together, options: outcome.value };
}

/** Returns the value in a list, or an empty list if the text was rejected. */
function readText(
  option: BackendOption,
  text: string,
  onProblem: (problem: string) => void,
): readonly unknown[] {
  try {
    return [option.read(text)];
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    onProblem(messageOf(error));
    return [];
  }
}

/** Reads texts that match a pattern. `problem` continues after the quoted text, such as "is not a region". */
export const matching = (pattern: RegExp, problem: string): ((text: string) => string) =>
  parsed((text) => (pattern.test(text) ? text : undefined), problem);

/** Reads texts that `parse` accepts; it returns undefined for others. */
export function parsed<Value>(
  parse: (text: string) => Value | undefined,
  problem: string,
): (text: string) => Value {
  return (text) => {
    const value = parse(text);
    if (value === undefined) throw new ClusterError("bad-usage", `${quoted(text)} ${problem}`);
    return value;
  };
}

export function oneOf<const Word extends string>(words: readonly Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((each) => each === text);
    if (word === undefined)
      throw new ClusterError("bad-usage", `${quoted(text)} is not one of ${words.join(", ")}`);
    return word;
  };
}

export function checked(problemOf: (text: string) => string | undefined): (text: string) => string {
  return (text) => {
    const problem = problemOf(text);
    if (problem !== undefined) throw new ClusterError("bad-usage", problem);
    return text;
  };
}

/** The help for `--lifetime`, for backends whose clusters otherwise exist until they are destroyed. */
export const lifetimeSummary =
  "Time until the nodes end by themselves, even if this program is gone; a later command removes the rest";

/** The option of backends whose nodes are on this computer. */
export const offlineOption = {
  isFlag: true,
  summary:
    "Let nodes reach each other and nothing else: not this computer, its networks or a metadata service",
  default: false,
  read: (given: string): boolean => given === "true",
} as const;

/** The option that all backends have. Each has its own distributions. */
export const distributionOption = <const Default extends string>(
  known: readonly string[],
  usual: Default,
  defaultText?: string,
) =>
  ({
    summary: "The operating system of the nodes",
    default: usual,
    ...(defaultText !== undefined && { defaultText }),
    choices: known,
    read: oneOf(known),
  }) as const;
