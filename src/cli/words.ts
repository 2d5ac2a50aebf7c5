import arg from "arg";
import { nearest } from "./nearest.ts";
import type { Option } from "./option.ts";

/** A command line taken apart, before any value is looked at. */
export interface Words {
  /** Texts by flag, in the order given; an empty text per occurrence where the option takes no value. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
  readonly problems: readonly string[];
  /** Flags that a problem names already. */
  readonly faulty: ReadonlySet<string>;
}

interface Reading {
  readonly declared: readonly Option[];
  /** What `arg` is told; grows by what turned out to be unknown or without a value, so that reading goes on. */
  readonly spec: Record<string, string | arg.Handler>;
  readonly texts: Map<string, string[]>;
  readonly problems: string[];
  readonly faulty: Set<string>;
}

/**
 * Tells options from positionals. `arg` stops at the first thing that it doesn't like: it is noted, `arg` is told to overlook it, and
 * reading begins anew, so that all problems come to light at once.
 */
export function readWords(declared: readonly Option[], argv: readonly string[], stopAtPositional: boolean): Words {
  const reading: Reading = { declared, spec: {}, texts: new Map(), problems: [], faulty: new Set() };
  for (const option of declared) {
    reading.spec[option.flag] = handler(option.flag, reading, option.kind === "value");
    if (option.short !== undefined) reading.spec[option.short] = option.flag;
  }
  const encoded = argv.map((word) => encode(word, declared));
  // Each failed round makes one name known, and a word holds as many names as it has letters.
  for (let rounds = encoded.join("").length + encoded.length; ; rounds -= 1) {
    for (const texts of reading.texts.values()) texts.length = 0;
    try {
      const found = arg(reading.spec, { argv: encoded, stopAtPositional });
      return { ...reading, positionals: found._.map(decode) };
    } catch (error) {
      if (!(error instanceof arg.ArgError) || rounds < 0) throw error;
      overlook(error, reading);
    }
  }
}

function handler(flag: string, reading: Reading, takesValue: boolean): arg.Handler {
  const texts: string[] = [];
  reading.texts.set(flag, texts);
  return takesValue ? (text) => texts.push(decode(text)) : arg.flag(() => texts.push(""));
}

function overlook(error: arg.ArgError, reading: Reading): void {
  // The text is the only place where arg names the option. The version is pinned and a test reads every message.
  if (error.code === "ARG_UNKNOWN_OPTION") overlookUnknown(after(error.message, "option: "), reading);
  else if (error.code.startsWith("ARG_MISSING_REQUIRED_")) overlookMissing(after(error.message, "): ", ": "), reading);
  else throw error;
}

/** What follows the first of these marks. */
function after(message: string, ...marks: readonly string[]): string {
  const mark = marks.find((each) => message.includes(each)) ?? "";
  return message.slice(message.indexOf(mark) + mark.length);
}

function overlookUnknown(name: string, reading: Reading): void {
  const shown = decode(name);
  const flagWithValue = reading.declared.find(
    (option) => option.kind !== "value" && shown.startsWith(`${option.flag}=`),
  );
  const flags = reading.declared.flatMap((option) => [
    option.flag,
    ...(option.short === undefined ? [] : [option.short]),
  ]);
  const meant = nearest(shown, name.startsWith("--") ? flags.filter((flag) => flag.startsWith("--")) : []);
  if (flagWithValue !== undefined) reading.problems.push(`${flagWithValue.flag}: it takes no value`);
  else reading.problems.push(`${shown}: no such option${meant === undefined ? "" : `; did you mean ${meant}?`}`);
  const takesValue = reading.declared.some((option) => option.kind === "value" && option.flag === meant);
  reading.spec[name] = takesValue ? () => undefined : arg.flag(() => undefined);
}

function overlookMissing(name: string, reading: Reading): void {
  const flagOrShort = name.replace(/ \(alias for .*$/s, "");
  const option = reading.declared.find((each) => each.flag === flagOrShort || each.short === flagOrShort);
  if (option !== undefined) {
    reading.problems.push(`${option.flag}: its value is missing (one that begins with a dash: ${option.flag}=-…)`);
    reading.faulty.add(option.flag);
  }
  reading.spec[option?.flag ?? flagOrShort] = arg.flag(() => undefined);
}

/**
 * `arg` 5.0.2 cuts `--env=A=b` off at the first line break, and takes `--flag=value` for `--flag`. So both characters go through it in
 * disguise. No word of a command line can hold a NUL.
 */
function encode(word: string, declared: readonly Option[]): string {
  const flagWithValue = declared.some((option) => option.kind !== "value" && word.startsWith(`${option.flag}=`));
  const hidden = flagWithValue ? word.replace("=", disguise) : word;
  return hidden.replaceAll(/[\n\r\u2028\u2029]/g, disguise);
}

const disguise = (character: string): string => `\0${character.charCodeAt(0)};`;

function decode(word: string): string {
  return word.replaceAll(/\0(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}
