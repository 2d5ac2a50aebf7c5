import { neutral } from "./references.ts";

/**
 * Outside text is text that this program didn't write: output of nodes, engines, clouds and
 * servers, and values that users pass. A message that quotes it marks it, and secrets are masked
 * between the marks only. So masking never hides our own words, or the names, paths, ids and keys
 * that scripts read.
 *
 * The marks are characters that Unicode reserves for such use inside a program
 * (https://www.unicode.org/faq/private_use.html#nonchar1). They never leave it: whatever prints,
 * logs or returns a text removes them.
 */
const begin = "\uFDD0";
const end = "\uFDD1";
const marks = /[\uFDD0\uFDD1]/g;

/**
 * Marks a text as outside text, line by line, so that each line keeps its marks if others are cut
 * off. Indentation stays in front of the marks.
 */
export const outside = (text: string): string =>
  unmarked(text)
    .split("\n")
    .map((line) => {
      const words = line.trimStart();
      return words === "" ? line : `${line.slice(0, -words.length)}${begin}${words}${end}`;
    })
    .join("\n");

export const isMarked = (text: string): boolean => text.search(marks) !== -1;

/** The text without marks, with neutral words for its references. */
export const unmarked = (text: string): string => neutral(text).replaceAll(marks, "");

/**
 * Changes the marked parts of a text, or the others, and removes the marks; references get neutral
 * words. A part that has lost one of its marks counts as marked.
 */
export function mapOutside(
  text: string,
  changeOutside: (part: string) => string,
  changeOwn: (part: string) => string = (part) => part,
): string {
  // Lines of one text are masked together, because a secret may have several.
  const pieces = neutral(text)
    .replaceAll(/\uFDD1([\n\t ]+)\uFDD0/g, "$1")
    .split(/([\uFDD0\uFDD1])/);
  return pieces
    .map((piece, index) => {
      if (index % 2 === 1 || piece === "") return "";
      return pieces[index - 1] === begin || pieces[index + 1] === end
        ? changeOutside(piece)
        : changeOwn(piece);
    })
    .join("");
}

/** Changes every text in a value that will become JSON. Keys stay, because programs read them. */
export function mapTexts(data: unknown, change: (text: string) => string): unknown {
  if (typeof data === "string") return change(data);
  if (typeof data === "bigint") return String(data);
  if (data instanceof Date) return Number.isNaN(data.getTime()) ? null : data.toISOString();
  if (data instanceof Error) return change(outside(data.message));
  if (data instanceof Set || Array.isArray(data))
    return Array.from(data, (each: unknown) => mapTexts(each, change));
  if (typeof data !== "object" || data === null) return data;
  const entries = data instanceof Map ? data.entries() : Object.entries(data);
  return Object.fromEntries(
    Array.from(entries, ([key, value]) => [String(key), mapTexts(value, change)]),
  );
}

/** The facts of an error without marks. Other values than texts stay as they are. */
export function unmarkedFacts(
  facts: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(facts).map(([key, fact]) => [key, unmarkedFact(fact)]));
}

function unmarkedFact(fact: unknown): unknown {
  if (typeof fact === "string") return unmarked(fact);
  if (Array.isArray(fact)) return fact.map(unmarkedFact);
  const isPlain =
    typeof fact === "object" && fact !== null && Object.getPrototypeOf(fact) === Object.prototype;
  return isPlain ? unmarkedFacts(fact as Readonly<Record<string, unknown>>) : fact;
}
