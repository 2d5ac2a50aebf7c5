import { quoted } from "../errors.ts";
import { type Reader, integer, matching, oneOf, refined } from "./reader.ts";

/**
 * What a value must be, wherever it comes from. The command line, the library, platform.yaml, tags,
 * labels and files read values by the same rules; each has an adapter for its own form (`byRule` in
 * cli/options/value-types.ts and in read-arguments.ts, `readFact` in
 * platform/folder/fact-reader.ts).
 */
export interface Rule<Value> {
  readonly read: Reader<Value>;
  /** Describes a valid value, after "is not": `a region such as us-west-2`. */
  readonly what: string;
  /** All valid texts, if they are few. */
  readonly choices?: readonly string[];
}

/** Returns why the rule refuses a text, as one sentence. */
export const refusal = ({ what, choices = [] }: Rule<unknown>, text: string): string =>
  `${quoted(text)} is not ${what}${didYouMean(nearest(text, choices))}`;

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
  choices: words,
});

/** In lower case, whatever the case of the text. */
export const sha256Rule: Rule<string> = {
  read: refined(matching(/^[0-9a-f]{64}$/i), (sum) => sum.toLowerCase()),
  what: "a SHA-256 checksum, which has 64 hexadecimal digits",
};

/** The candidate that a mistyped word probably meant; undefined if none is near enough to suggest. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > mostLetters) return undefined;
  const allowed = Math.max(1, Math.floor(bare(word).length / 3));
  const [best] = candidates
    .map((candidate) => ({
      candidate,
      distance: editDistance(word.toLowerCase(), candidate.toLowerCase()),
    }))
    .toSorted((one, other) => one.distance - other.distance);
  if (best !== undefined && best.distance <= allowed && best.distance < best.candidate.length)
    return best.candidate;
  // `--region` for `--cloud-region`: too many letters differ, yet the meaning is plain.
  return bare(word).length < 4
    ? undefined
    : candidates.find((candidate) => bare(candidate).includes(bare(word)));
}

/** No name of ours is longer. */
const mostLetters = 60;

const bare = (word: string): string => word.replace(/^-+/, "").toLowerCase();

/** Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(one: string, other: string): number {
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, index) => index)];
  const at = (row: number, column: number): number =>
    rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let row = 1; row <= one.length; row += 1) {
    const current = [row];
    rows.push(current);
    for (let column = 1; column <= other.length; column += 1) {
      const replaced = at(row - 1, column - 1) + (one[row - 1] === other[column - 1] ? 0 : 1);
      const swaps = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      const swapped = swaps ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(replaced, swapped, at(row - 1, column) + 1, at(row, column - 1) + 1));
    }
  }
  return at(one.length, other.length);
}

/** Ends a message about a mistyped word. */
export const didYouMean = (meant: string | undefined): string =>
  meant === undefined ? "" : `; did you mean ${meant}?`;
