import { quoted } from "../errors.ts";
import { type Reader, integer, matching, oneOf, refined } from "./reader.ts";

/**
 * What a value must be, wherever it comes from. The command line, the library, platform.yaml, tags, labels and files read values by the same rules; each
 * has an adapter for its own form (`byRule` in cli/options/value-types.ts and in read-arguments.ts, `readFact` in platform/folder/fact-reader.ts).
 */
export interface Rule<Value> {
  readonly read: Reader<Value>;
  /** Describes a valid value, after "is not": `a region such as us-west-2`. */
  readonly what: string;
}

/** Returns why the rule refuses a text, as one sentence. */
export const refusal = ({ what }: Rule<unknown>, text: string): string =>
  `${quoted(text)} is not ${what}`;

export const wholeNumber = (least: number, most: number): Rule<number> => ({
  read: refined(integer, (number) => (number >= least && number <= most ? number : undefined)),
  what: `a whole number from ${least} to ${most}`,
});

/** The same number as a text. */
export const inDigits = ({ read, what }: Rule<number>): Rule<number> => ({
  read: refined(matching(/^[0-9]{1,15}$/), (text) => read(Number(text))),
  what,
});

/** A number in a file, or a label's text without leading zeros. */
export const numberOrDigits =
  ({ read }: Rule<number>): Reader<number> =>
  (found) =>
    read(typeof found === "string" && canonical.test(found) ? Number(found) : found);

const canonical = /^(?:0|[1-9]\d{0,8})$/;

export const wordOf = <const Word extends string>(words: readonly Word[]): Rule<Word> => ({
  read: oneOf(...words),
  what: `one of ${words.join(", ")}`,
});

/** In lower case, whatever the case of the text. */
export const sha256Rule: Rule<string> = {
  read: refined(matching(/^[0-9a-f]{64}$/i), (sum) => sum.toLowerCase()),
  what: "a SHA-256 checksum, which has 64 hexadecimal digits",
};
