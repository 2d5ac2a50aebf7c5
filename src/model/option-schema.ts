import { optionName } from "../references.ts";
import { type Checked, badUsage } from "./checked.ts";
import type { Reader } from "./reader.ts";
import { type Rule, refusal, wordOf } from "./rule.ts";
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
export interface BackendOption<Value = unknown> extends Rule<Value> {
  readonly summary: string;
  /** Absent: `--` and the option's name. */
  readonly flag?: `--${string}`;
  /**
   * Whether it selects the scope in which to look for clusters, such as a region. Every command
   * that finds clusters has it.
   */
  readonly isScope?: true;
  /** Whether its value names something outside the nodes that a file with the cluster doesn't contain. */
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
}

/**
 * The variable with the default of an option that selects the scope. Commands inside of `run
 * --local` have it, so that they look where the cluster is.
 */
export const scopeVariable = (kind: string): string => `CLUSTER_${kind.toUpperCase()}`;

/** Options by name. The library and its errors use these names. */
export type OptionSchema = Readonly<Record<string, BackendOption>>;

type Single<Option> = Option extends { readonly read: Reader<infer Value> } ? Value : never;

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

/**
 * The options of the library that follow from a schema. Each is described by its `summary`, and has
 * its `default` or `defaultText`.
 */
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
) {
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
 * Reads and checks the options that a program passes, like those of a command line. Throws
 * `bad-usage` with every problem. `parse` checks several values together; a value that was invalid
 * by itself is absent.
 */
export function readOptions<Schema extends OptionSchema, Options>(
  schema: Schema,
  given: Given<Schema>,
  parse: (values: Partial<SchemaValues<Schema>>) => Checked<Options>,
) {
  const problems: string[] = [];
  const values = Object.entries(schema).map(([name, option]) => {
    const texts = [given[name] ?? []].flat().map(String);
    const read = texts.flatMap((text): readonly unknown[] => {
      const value = option.read(text);
      if (value === undefined) problems.push(`${optionName(name)}: ${refusal(option, text)}`);
      return value === undefined ? [] : [value];
    });
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

/** The help for `--lifetime`, for backends whose clusters otherwise exist until they are destroyed. */
export const lifetimeSummary =
  "Time until the nodes end by themselves, even if this program is gone; a later command removes the rest";

/** The rule of an option without a value. */
export const switched: Rule<boolean> = {
  read: (given) => given === "true",
  what: "true or false",
};

/** The option of backends whose nodes are on this computer. */
export const offlineOption = {
  isFlag: true,
  summary:
    "Let nodes reach each other and nothing else: not this computer, its networks or a metadata service",
  default: false,
  ...switched,
} as const;

/**
 * The option that all backends have. Each has its own distributions. `selinuxProblem` says why
 * SELinux can't be set to enforcing on nodes of one; undefined if it can.
 */
export const distributionOption = <const Default extends string>(
  known: readonly string[],
  usual: Default,
  defaultText: string,
  selinuxProblem: (distribution: string) => string | undefined,
) =>
  ({
    summary: "The operating system of the nodes",
    default: usual,
    defaultText,
    selinuxProblem,
    ...wordOf(known),
  }) as const;
