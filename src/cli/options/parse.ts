import { ClusterError, quoted, messageOf } from "../../errors.ts";
import type { Command } from "../command.ts";
import { helpOption } from "../help/describe.ts";
import { BadValue } from "./option.ts";
import type { Argument, Invocation, Option } from "./option.ts";
import type { Problems } from "./problems.ts";
import { givenReplacementOf } from "./replaced.ts";
import { readWords, textsOf } from "./words.ts";
import type { Words } from "./words.ts";

export interface ParsedCommandLine {
  readonly isHelpWanted: boolean;
  /** Values by declared name. A missing or invalid value is absent, and a problem names it. */
  readonly values: Readonly<Record<string, unknown>>;
}

interface Reader {
  readonly invocation: Invocation;
  readonly problems: Problems;
  /** Receives every value declared as secret, before it is parsed. */
  readonly hide: (secret: string) => void;
}

/** One declared value, and the texts given for it on the command line. */
interface Given {
  readonly name: string;
  readonly declared: Option | Argument;
  readonly label: string;
  readonly texts: readonly string[];
}

/** `argv` begins after the command's name. Adds every error to `problems`; throws only for bugs. */
export async function parseCommandLine(
  command: Command,
  argv: readonly string[],
  reader: Reader,
): Promise<ParsedCommandLine> {
  const hasRest = Object.values(command.positionals).some((argument) => argument.rest);
  const words = readWords([...Object.values(command.options), helpOption], argv, hasRest);
  if (textsOf(words, helpOption).length > 0) return { isHelpWanted: true, values: {} };
  for (const problem of words.problems) reader.problems.add(problem);

  const values: Record<string, unknown> = {};
  for (const given of [...givenOptions(command, words), ...givenPositionals(command, words)]) {
    const replacement = givenReplacementOf(command, given.name, words);
    if (replacement !== undefined && given.texts.length > 0) {
      reader.problems.add(`${given.label}: cannot be combined with ${replacement.flag}`);
    }
    const value = replacement === undefined ? await readValue(given, reader) : undefined;
    if (value !== undefined) values[given.name] = value;
  }
  // After a mistyped option, an extra word may be that option's value, so it must not be reported as a second problem.
  const most = hasRest || words.problems.length > 0 ? Infinity : Object.keys(command.positionals).length;
  for (const extra of words.positionals.slice(most)) reader.problems.add(`${quoted(extra)}: unexpected argument`);
  return { isHelpWanted: false, values };
}

function givenOptions(command: Command, words: Words): readonly Given[] {
  return Object.entries(command.options)
    .filter(([, option]) => !words.faulty.has(option.flag))
    .map(([name, declared]) => ({ name, declared, label: declared.flag, texts: textsOf(words, declared) }));
}

function givenPositionals(command: Command, { positionals }: Words): readonly Given[] {
  return Object.entries(command.positionals).map(([name, declared], index) => {
    const texts = positionals.slice(index, declared.rest ? undefined : index + 1);
    return { name, declared, label: declared.name, texts };
  });
}

/** Returns the value from the command line, the environment or the default, in that order. */
async function readValue({ declared, label, texts }: Given, reader: Reader): Promise<unknown> {
  const { kind, isList } = shapeOf(declared);
  if (texts.length > 1 && !isList) return reader.problems.add(`${label}: given more than once`);
  if (kind === "flag") return texts.length > 0;
  if (kind === "count") return texts.length;
  const variable = declared.environment ?? "";
  const inherited = reader.invocation.environment[variable] ?? "";
  const [source, used] = texts.length === 0 && inherited !== "" ? [variable, [inherited]] : [label, texts];
  if (used.length === 0) return fallback(declared, label, reader);
  const read: unknown[] = [];
  for (const text of used) read.push(await readText(declared, source, text, reader));
  if (read.includes(undefined)) return undefined;
  return isList ? read : read[0];
}

function shapeOf(declared: Option | Argument): { readonly kind: Option["kind"]; readonly isList: boolean } {
  if ("kind" in declared) return { kind: declared.kind, isList: declared.repeatable === true };
  return { kind: "value", isList: declared.rest };
}

function fallback(declared: Option | Argument, label: string, reader: Reader): unknown {
  if (declared.defaultFrom !== undefined) return declared.defaultFrom(reader.invocation);
  if (declared.default !== undefined) return declared.default;
  const { choices } = declared.type;
  const choiceText = choices === undefined ? "" : ` (${choices.join(", ")})`;
  if (declared.required === true) return reader.problems.add(`${label}: required${choiceText}`);
  return shapeOf(declared).isList ? [] : undefined;
}

/** Returns the value, or undefined if the text was rejected. */
async function readText(declared: Option | Argument, source: string, text: string, reader: Reader): Promise<unknown> {
  if (declared.secret === true && text !== "-") reader.hide(text);
  try {
    const value = await declared.type.parse(text, reader.invocation);
    for (const secret of declared.type.secretsIn?.(value) ?? []) reader.hide(secret);
    return value;
  } catch (error) {
    for (const problem of problemsOf(error)) reader.problems.add(`${source}: ${problem}`);
    return undefined;
  }
}

/** Rethrows anything that isn't the user's fault. */
function problemsOf(error: unknown): readonly string[] {
  if (error instanceof BadValue) return error.problems;
  if (!(error instanceof ClusterError) || error.id !== "bad-usage") throw error;
  return [`${messageOf(error)}${error.hint === undefined ? "" : ` ${ClusterError.marked(error).hint}`}`];
}
