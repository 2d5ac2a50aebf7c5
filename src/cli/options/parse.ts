import arg from "arg";
import { ClusterError, hintOf, messageOf, quoted } from "../../errors.ts";
import type { Command } from "../command.ts";
import { helpOption } from "../help/help.ts";
import {
  type Argument,
  BadValue,
  type Habits,
  type Invocation,
  type Option,
  type Options,
  replacementOf,
} from "./option.ts";
import { variable } from "../../system/variable.ts";
import { didYouMean, nearest } from "../../model/rule.ts";
import type { Problems } from "./problems.ts";

interface ParsedCommandLine {
  readonly isHelpWanted: boolean;
  /** Values by declared name. A missing or invalid value is absent, and a problem names it. */
  readonly values: Readonly<Record<string, unknown>>;
}

interface Reader {
  readonly invocation: Invocation;
  readonly problems: Problems;
  /** Receives every value declared as secret, before it is parsed. */
  readonly hide: (secret: string) => void;
  readonly habits?: Habits | undefined;
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
  const { habits } = reader;
  const read = readCommandWords(command, argv, habits);
  if (textsOf(read, helpOption).length > 0) return { isHelpWanted: true, values: {} };
  const words = withOnlyArgument(command, read, habits);
  for (const problem of words.problems) reader.problems.add(problem);
  for (const flag of words.faulty) reader.problems.reject(flag);

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
  const single = Object.values(command.positionals).filter(({ rest }) => rest !== "after-dashes");
  const hasRest = single.some(({ rest }) => rest !== undefined);
  const most = hasRest || words.problems.length > 0 ? Infinity : single.length;
  const advice = adviceOnExtra(command, words, habits);
  for (const extra of words.positionals.slice(most))
    reader.problems.add(`${quoted(extra)}: unexpected argument${advice}`);
  return { isHelpWanted: false, values };
}

function adviceOnExtra(command: Command, words: Words, habits: Habits | undefined): string {
  const last = Object.values(command.positionals).find(({ rest }) => rest === "after-dashes");
  if (last !== undefined && words.afterDashes.length === 0) return "; write -- before the command";
  const isMeant = Object.values(command.options).some(({ flag }) => flag === habits?.argument);
  return isMeant ? `; a cluster is named by ${habits?.argument}` : "";
}

/** Takes the only argument of a command without arguments as the value of the option that it stands for. */
function withOnlyArgument(command: Command, words: Words, habits: Habits | undefined): Words {
  const { positionals, texts } = words;
  const declared = Object.values(command.options).find(({ flag }) => flag === habits?.argument);
  const isMeant =
    declared !== undefined &&
    Object.keys(command.positionals).length === 0 &&
    positionals.length === 1;
  if (!isMeant || textsOf(words, declared).length > 0) return words;
  return { ...words, positionals: [], texts: new Map([...texts, [declared.flag, positionals]]) };
}

function givenOptions(command: Command, words: Words): readonly Given[] {
  return Object.entries(command.options)
    .filter(([, option]) => !words.faulty.has(option.flag))
    .map(([name, declared]) => ({
      name,
      declared,
      label: declared.flag,
      texts: textsOf(words, declared),
    }));
}

function givenPositionals(command: Command, { positionals, afterDashes }: Words): readonly Given[] {
  return Object.entries(command.positionals).map(([name, declared], index) => {
    const isRest = declared.rest !== undefined;
    const texts =
      declared.rest === "after-dashes"
        ? afterDashes
        : positionals.slice(index, isRest ? undefined : index + 1);
    return { name, declared, label: declared.name, texts };
  });
}

async function readValue({ declared, label, texts }: Given, reader: Reader): Promise<unknown> {
  const { kind, isList } = shapeOf(declared);
  if (texts.length > 1 && !isList) {
    reader.problems.add(`${label}: given more than once`);
    return reader.problems.reject(label);
  }
  if (kind === "flag") return texts.length > 0;
  if (kind === "count") return texts.length;
  const name = declared.environment ?? "";
  const inherited = variable(reader.invocation.environment, name);
  const [source, used] =
    texts.length === 0 && inherited !== undefined ? [name, [inherited]] : [label, texts];
  if (used.length === 0) return fallback(declared, label, reader);
  const read: unknown[] = [];
  for (const text of used)
    read.push(await readText(declared, source, meantChoice(declared, text, reader), reader));
  if (read.includes(undefined)) return reader.problems.reject(label);
  return isList ? read : read[0];
}

/** Returns the action that an argument stands for under another name, or the text itself. */
function meantChoice(
  { type: { choices = [] }, ...declared }: Option | Argument,
  text: string,
  reader: Reader,
): string {
  if ("flag" in declared || choices.includes(text)) return text;
  return reader.habits?.words.get(text)?.find((word) => choices.includes(word)) ?? text;
}

function shapeOf(declared: Option | Argument): {
  readonly kind: Option["kind"];
  readonly isList: boolean;
} {
  if ("kind" in declared) return { kind: declared.kind, isList: declared.repeatable === true };
  return { kind: "value", isList: declared.rest !== undefined };
}

function fallback(declared: Option | Argument, label: string, reader: Reader): unknown {
  if (declared.defaultFrom !== undefined) return declared.defaultFrom(reader.invocation);
  if (declared.default !== undefined) return declared.default;
  const { choices } = declared.type;
  const choiceText = choices === undefined ? "" : ` (${choices.join(", ")})`;
  if (declared.required === true) return reader.problems.add(`${label}: required${choiceText}`);
  return shapeOf(declared).isList ? [] : undefined;
}

async function readText(
  declared: Option | Argument,
  source: string,
  text: string,
  reader: Reader,
): Promise<unknown> {
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
  return [`${messageOf(error)}${error.hint === undefined ? "" : ` ${hintOf(error)}`}`];
}

/** A command line split into options and positionals, before any value is read. */
export interface Words {
  /** Texts by flag, in the order given. An option without a value has an empty text per occurrence. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
  /** The words after the first `--`, if the command has an argument for them. */
  readonly afterDashes: readonly string[];
  readonly problems: readonly string[];
  /** Flags that a problem already names. */
  readonly faulty: ReadonlySet<string>;
}

export const textsOf = (words: Words, { flag }: Option): readonly string[] =>
  words.texts.get(flag) ?? [];

/** Separates the words of a command's line, which begins after its name. */
export function readCommandWords(
  { name, options, positionals }: Pick<Command, "name" | "options" | "positionals">,
  argv: readonly string[],
  habits?: Habits,
): Words {
  const declared = [...Object.values(options), helpOption];
  const rest = Object.values(positionals).find((each) => each.rest !== undefined)?.rest;
  // Dashes alone are never an option's value.
  const dashes = rest === "after-dashes" && argv.includes("--") ? argv.indexOf("--") : argv.length;
  const words = readWords(declared, argv.slice(0, dashes), rest === "words", {
    habits,
    commandName: name,
  });
  return { ...words, afterDashes: argv.slice(dashes + 1) };
}

interface Reading {
  readonly declared: readonly Option[];
  readonly commandName: string;
  readonly habits: Habits | undefined;
  /** The options declared to `arg`. It grows by options that turn out to be unknown or to lack a value. */
  readonly spec: Record<string, string | arg.Handler>;
  readonly texts: Map<string, string[]>;
  readonly problems: string[];
  readonly faulty: Set<string>;
}

/**
 * Separates options from positionals. `arg` stops at the first error, so this notes the error,
 * declares the option that caused it, and starts again: that way all problems are found at once.
 */
export function readWords(
  declared: readonly Option[],
  argv: readonly string[],
  stopAtPositional: boolean,
  {
    habits,
    commandName = "",
  }: { readonly habits?: Habits | undefined; readonly commandName?: string } = {},
): Words {
  const texts = new Map(declared.map(({ flag }): [string, string[]] => [flag, []]));
  const reading: Reading = {
    declared,
    commandName,
    habits,
    spec: {},
    texts,
    problems: [],
    faulty: new Set(),
  };
  for (const { flag, short, kind } of declared) {
    const given = texts.get(flag) ?? [];
    reading.spec[flag] =
      kind === "value" ? (text) => given.push(decode(text)) : arg.flag(() => given.push(""));
    if (short !== undefined) reading.spec[short] = flag;
  }
  for (const [word, meaning] of habits?.options ?? []) addHabit(word, meaning, reading);
  const encoded = argv.map((word) => encode(word, declared));
  // Each failed round adds one known name or joins two words, and a word contains at most as many names as letters.
  for (let rounds = encoded.join("").length + encoded.length; ; rounds -= 1) {
    for (const given of texts.values()) given.length = 0;
    try {
      const found = arg(reading.spec, { argv: encoded, stopAtPositional });
      return { ...reading, positionals: found._.map(decode), afterDashes: [] };
    } catch (error) {
      if (!(error instanceof arg.ArgError) || rounds < 0) throw error;
      // Only the error's text names the option. The version is pinned, and a test reads every message.
      const text = error.message.replace(/^[^:]*: /, "");
      const [name = text] = text.split(" (alias for ");
      if (error.code === "ARG_UNKNOWN_OPTION") acceptUnknown(text, reading);
      else if (!joinValue(name, encoded, declared)) acceptWithoutValue(name, reading);
    }
  }
}

function addHabit(word: string, meaning: string, { spec, texts }: Reading): void {
  const [flag = "", text] = meaning.split("=");
  const given = texts.get(flag);
  if (given === undefined || Object.hasOwn(spec, word)) return;
  spec[word] = text === undefined ? flag : arg.flag(() => given.push(text));
}

/**
 * Joins an option and its value to one word where `arg` sees none: `-cdefault` becomes
 * `--cluster-id=default`, and `--agents -1` becomes `--agents=-1`. Returns whether there was one.
 */
function joinValue(name: string, words: string[], declared: readonly Option[]): boolean {
  const { flag = "", short = flag } =
    declared.find((each) => each.flag === name || each.short === name) ?? {};
  const letterAt = (word: string): number =>
    /^-[^-]/.test(word) ? word.indexOf(name.slice(1), 1) : -1;
  const attached = words.findIndex(
    (word) => letterAt(word) > 0 && letterAt(word) < word.length - 1,
  );
  if (name === short && name !== flag && attached >= 0) {
    const word = words[attached] ?? "";
    const flagsBefore = letterAt(word) > 1 ? [word.slice(0, letterAt(word))] : [];
    words.splice(
      attached,
      1,
      ...flagsBefore,
      `${flag}=${word.slice(letterAt(word) + 1).replace(/^=/, "")}`,
    );
    return true;
  }
  const bare = words.findIndex(
    (word, index) => [flag, short].includes(word) && /^-\d/.test(words[index + 1] ?? ""),
  );
  if (bare >= 0) words.splice(bare, 2, `${flag}=${words[bare + 1]}`);
  return bare >= 0;
}

function acceptUnknown(
  name: string,
  { declared, commandName, habits, spec, problems, faulty }: Reading,
): void {
  const shown = decode(name);
  const hint = habits?.hints.get(`${commandName} ${shown}`);
  const flagWithValue = declared.find(
    ({ kind, flag }) => kind !== "value" && shown.startsWith(`${flag}=`),
  );
  // CI systems read options a line.
  const spaced = declared.find(
    ({ kind, flag }) => kind === "value" && shown.startsWith(`${flag} `),
  );
  const flags: readonly string[] = declared.map(({ flag }) => flag);
  const meant =
    habits?.meant.get(shown)?.find((flag) => flags.includes(flag)) ?? nearest(shown, flags);
  if (hint !== undefined) problems.push(hint);
  else if (flagWithValue !== undefined) problems.push(`${flagWithValue.flag}: takes no value`);
  else if (spaced !== undefined) {
    faulty.add(spaced.flag);
    problems.push(`${spaced.flag}: its value is in the same word; write ${spaced.flag}=…`);
  } else problems.push(`${shown}: no such option${didYouMean(meant)}`);
  const takesValue =
    spaced === undefined && declared.some(({ kind, flag }) => kind === "value" && flag === meant);
  spec[name] = takesValue ? () => undefined : arg.flag(() => undefined);
}

function acceptWithoutValue(name: string, { declared, spec, problems, faulty }: Reading): void {
  const flag = declared.find((each) => each.flag === name || each.short === name)?.flag ?? name;
  problems.push(`${flag}: the value is missing (if it begins with a dash, write ${flag}=-…)`);
  faulty.add(flag);
  spec[flag] = arg.flag(() => undefined);
}

/**
 * `arg` 5.0.2 cuts off `--env=A=b` at the first line break, and reads `--flag=value` as `--flag`.
 * So both characters are encoded before they reach it. A word of a command line cannot contain a
 * NUL.
 */
function encode(word: string, declared: readonly Option[]): string {
  const flagWithValue = declared.some(
    (option) => option.kind !== "value" && word.startsWith(`${option.flag}=`),
  );
  const hidden = flagWithValue ? word.replace("=", disguise) : word;
  return hidden.replaceAll(/[\n\r\u2028\u2029]/g, disguise);
}

const disguise = (character: string): string => `\0${character.charCodeAt(0)};`;

function decode(word: string): string {
  return word.replaceAll(/\0(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}

export function givenReplacementOf(
  command: { readonly options: Options },
  name: string,
  words: Words,
): Option | undefined {
  const replacement = replacementOf(command, name);
  return replacement !== undefined && textsOf(words, replacement).length > 0
    ? replacement
    : undefined;
}
