import { ClusterError } from "../errors.ts";
import type { Command } from "./command.ts";
import { helpOption } from "./describe.ts";
import { BadValue } from "./option.ts";
import type { Argument, Option, Invocation } from "./option.ts";
import type { Problems } from "./problems.ts";
import { quoted } from "./value-types.ts";
import { readWords } from "./words.ts";
import type { Words } from "./words.ts";

export interface ParsedCommandLine {
  readonly isHelpWanted: boolean;
  /** Values by declared name. One that is missing or wrong is absent and a problem names it. */
  readonly values: Readonly<Record<string, unknown>>;
}

interface Reader {
  readonly invocation: Invocation;
  readonly problems: Problems;
  /** Told of every value that was declared secret, before it is parsed. */
  readonly hide: (secret: string) => void;
}

/** `argv` begins after the command's name. Adds what is wrong to `problems`; throws only for bugs. */
export async function parseCommandLine(
  command: Command,
  argv: readonly string[],
  reader: Reader,
): Promise<ParsedCommandLine> {
  const positionals = Object.entries(command.positionals);
  const hasRest = positionals.some(([, argument]) => argument.rest);
  const words = readWords([...Object.values(command.options), helpOption], argv, hasRest);
  if (textsOf(words, helpOption.flag).length > 0) return { isHelpWanted: true, values: {} };
  for (const problem of words.problems) reader.problems.add(problem);

  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(command.options)) {
    const texts = textsOf(words, option.flag);
    if (texts.length > 1 && option.repeatable !== true)
      reader.problems.add(`${option.flag}: it was given more than once`);
    else if (!words.faulty.has(option.flag)) await readOption(values, { name, option, texts }, reader);
  }
  await readPositionals(values, positionals, { words, reader });
  return { isHelpWanted: false, values };
}

async function readOption(
  values: Record<string, unknown>,
  found: { readonly name: string; readonly option: Option; readonly texts: readonly string[] },
  reader: Reader,
): Promise<void> {
  const { name, option, texts } = found;
  if (option.kind === "flag") values[name] = texts.length > 0;
  else if (option.kind === "count") values[name] = texts.length;
  else if (option.repeatable === true) {
    const usable: unknown[] = [];
    for (const text of texts) usable.push(...(await readText(option, option.flag, text, reader)));
    if (usable.length === texts.length) values[name] = usable;
    if (texts.length === 0 && option.required === true) reader.problems.add(missing(option, option.flag));
  } else await readSingle(values, { name, declared: option, label: option.flag, text: texts[0] }, reader);
}

async function readPositionals(
  values: Record<string, unknown>,
  declared: readonly (readonly [string, Argument])[],
  { words, reader }: { readonly words: Words; readonly reader: Reader },
): Promise<void> {
  for (const [index, [name, argument]] of declared.entries()) {
    if (!argument.rest) {
      const text = words.positionals[index];
      await readSingle(values, { name, declared: argument, label: argument.name, text }, reader);
    } else if (words.positionals.length > index) values[name] = words.positionals.slice(index);
    else reader.problems.add(missing(argument, argument.name));
  }
  // What stands here after a mistyped option may be that option's value: don't send people after a second problem that isn't one.
  if (words.problems.length > 0 || declared.some(([, argument]) => argument.rest)) return;
  for (const extra of words.positionals.slice(declared.length))
    reader.problems.add(`${quoted(extra)}: one argument too many`);
}

/** One value from the command line, else from the environment, else the default. */
async function readSingle(
  values: Record<string, unknown>,
  found: {
    readonly name: string;
    readonly declared: Option | Argument;
    readonly label: string;
    readonly text: string | undefined;
  },
  reader: Reader,
): Promise<void> {
  const { name, declared, label, text } = found;
  const variable = declared.environment;
  const inherited = variable === undefined ? "" : (reader.invocation.environment[variable] ?? "");
  if (text !== undefined || inherited !== "") {
    const source = text === undefined ? (variable ?? label) : label;
    const usable = await readText(declared, source, text ?? inherited, reader);
    if (usable.length > 0) values[name] = usable[0];
  } else if (declared.defaultFrom !== undefined) values[name] = declared.defaultFrom(reader.invocation);
  else if (declared.default !== undefined) values[name] = declared.default;
  else if (declared.required === true) reader.problems.add(missing(declared, label));
}

/** The value in a list, or an empty list when the text was refused. */
async function readText(
  declared: Option | Argument,
  source: string,
  text: string,
  { problems, hide, invocation }: Reader,
): Promise<readonly unknown[]> {
  if (declared.secret === true && text !== "-") hide(text);
  try {
    return [await declared.type.parse(text, invocation)];
  } catch (error) {
    const isUsersFault = error instanceof BadValue || (error instanceof ClusterError && error.id === "bad-usage");
    if (!isUsersFault) throw error;
    const hint = error instanceof ClusterError && error.hint !== undefined ? ` ${error.hint}` : "";
    problems.add(`${source}: ${error.message}${hint}`);
    return [];
  }
}

const textsOf = (words: Words, name: string): readonly string[] => words.texts.get(name) ?? [];

function missing(declared: Option | Argument, label: string): string {
  const choices = declared.type.choices === undefined ? "" : ` (${declared.type.choices.join(", ")})`;
  return `${label}: it is required${choices}`;
}
