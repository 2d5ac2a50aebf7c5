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

export const textsOf = (words: Words, { flag }: Option): readonly string[] => words.texts.get(flag) ?? [];

interface Reading {
  readonly declared: readonly Option[];
  /** What `arg` is told; grows by what turned out to be unknown or without a value. */
  readonly spec: Record<string, string | arg.Handler>;
  readonly texts: Map<string, string[]>;
  readonly problems: string[];
  readonly faulty: Set<string>;
}

/**
 * Tells options from positionals. `arg` stops at the first thing that it refuses: that is noted, `arg` is told to accept it, and reading
 * starts again, so that all problems come to light at once.
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
  // Each failed round makes one name known, and a word holds as many names as it has letters.
  for (let rounds = encoded.join("").length + encoded.length; ; rounds -= 1) {
    for (const texts of reading.texts.values()) texts.length = 0;
    try {
      const found = arg(reading.spec, { argv: encoded, stopAtPositional });
      return { ...reading, positionals: found._.map(decode) };
    } catch (error) {
      if (!(error instanceof arg.ArgError) || rounds < 0) throw error;
      // The text is the only place where arg names the option. The version is pinned and a test reads every message.
      const name = error.message.replace(/^[^:]*: /, "");
      if (error.code === "ARG_UNKNOWN_OPTION") acceptUnknown(name, reading);
      else acceptWithoutValue(name.replace(/ \(alias for .*$/, ""), reading);
    }
  }
}

function acceptUnknown(name: string, { declared, spec, problems }: Reading): void {
  const shown = decode(name);
  const flagWithValue = declared.find(({ kind, flag }) => kind !== "value" && shown.startsWith(`${flag}=`));
  const meant = name.startsWith("--") ? nearest(shown, declared.map(({ flag }) => flag)) : undefined; // prettier-ignore
  if (flagWithValue !== undefined) problems.push(`${flagWithValue.flag}: it takes no value`);
  else problems.push(`${shown}: no such option${meant === undefined ? "" : `; did you mean ${meant}?`}`);
  const takesValue = declared.some(({ kind, flag }) => kind === "value" && flag === meant);
  spec[name] = takesValue ? () => undefined : arg.flag(() => undefined);
}

function acceptWithoutValue(name: string, { declared, spec, problems, faulty }: Reading): void {
  const flag = declared.find((each) => each.flag === name || each.short === name)?.flag ?? name;
  problems.push(`${flag}: its value is missing (one that begins with a dash: ${flag}=-…)`);
  faulty.add(flag);
  spec[flag] = arg.flag(() => undefined);
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
