import arg from "arg";
import { nearest } from "./problems.ts";
import type { Option } from "./option.ts";

/** A command line split into options and positionals, before any value is read. */
export interface Words {
  /** Texts by flag, in the order given. An option without a value has an empty text per occurrence. */
  readonly texts: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
  readonly problems: readonly string[];
  /** Flags that a problem already names. */
  readonly faulty: ReadonlySet<string>;
}

export const textsOf = (words: Words, { flag }: Option): readonly string[] => words.texts.get(flag) ?? [];

interface Reading {
  readonly declared: readonly Option[];
  /** The options declared to `arg`. It grows by options that turn out to be unknown or to lack a value. */
  readonly spec: Record<string, string | arg.Handler>;
  readonly texts: Map<string, string[]>;
  readonly problems: string[];
  readonly faulty: Set<string>;
}

/**
 * Separates options from positionals. `arg` stops at the first error. The error is noted, `arg` is then told to accept that option, and reading
 * starts again, so that all problems are found at once.
 */
export function readWords(declared: readonly Option[], argv: readonly string[], stopAtPositional: boolean): Words {
  const reading: Reading = { declared, spec: {}, texts: new Map(), problems: [], faulty: new Set() };
  for (const { flag, short, kind } of declared) {
    const texts: string[] = [];
    reading.texts.set(flag, texts);
    reading.spec[flag] = kind === "value" ? (text) => texts.push(decode(text)) : arg.flag(() => texts.push(""));
    if (short !== undefined) reading.spec[short] = flag;
  }
  const encoded = argv.map((word) => encode(word, declared));
  // Each failed round adds one known name, and a word contains at most as many names as letters.
  for (let rounds = encoded.join("").length + encoded.length; ; rounds -= 1) {
    for (const texts of reading.texts.values()) texts.length = 0;
    try {
      const found = arg(reading.spec, { argv: encoded, stopAtPositional });
      return { ...reading, positionals: found._.map(decode) };
    } catch (error) {
      if (!(error instanceof arg.ArgError) || rounds < 0) throw error;
      // Only the error's text names the option. The version is pinned, and a test reads every message.
      const name = error.message.replace(/^[^:]*: /, "");
      if (error.code === "ARG_UNKNOWN_OPTION") acceptUnknown(name, reading);
      else acceptWithoutValue(name.split(" (alias for ", 1)[0] ?? name, reading);
    }
  }
}

function acceptUnknown(name: string, { declared, spec, problems }: Reading): void {
  const shown = decode(name);
  const flagWithValue = declared.find(({ kind, flag }) => kind !== "value" && shown.startsWith(`${flag}=`));
  const meant = nearest(shown, declared.map(({ flag }) => flag)); // prettier-ignore
  if (flagWithValue !== undefined) problems.push(`${flagWithValue.flag}: takes no value`);
  else problems.push(`${shown}: no such option${meant === undefined ? "" : `; did you mean ${meant}?`}`);
  const takesValue = declared.some(({ kind, flag }) => kind === "value" && flag === meant);
  spec[name] = takesValue ? () => undefined : arg.flag(() => undefined);
}

function acceptWithoutValue(name: string, { declared, spec, problems, faulty }: Reading): void {
  const flag = declared.find((each) => each.flag === name || each.short === name)?.flag ?? name;
  problems.push(`${flag}: the value is missing (if it begins with a dash, write ${flag}=-…)`);
  faulty.add(flag);
  spec[flag] = arg.flag(() => undefined);
}

/**
 * `arg` 5.0.2 cuts off `--env=A=b` at the first line break, and reads `--flag=value` as `--flag`. So both characters are encoded before they reach
 * it. A word of a command line cannot contain a NUL.
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
