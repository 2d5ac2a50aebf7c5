import { isMarked, mapOutside, outside, unmarked } from "../outside-text.ts";

/**
 * Characters that control a terminal, hide text or reverse its order: control characters except tab and newline,
 * bidirectional controls, line separators other than newline, invisible characters that no language needs, and lone
 * surrogates.
 */
const unprintable =
  /[^\P{Cc}\n\t]|[\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u2069\uFEFF\uFFF9-\uFFFB]|[\u{E0000}-\u{E007F}]|\p{Cs}/gu;
/** Colour sequences, which are removed. Any other escape sequence only loses its first character. */
const colour = /[^\P{Cc}\n\t]\[[\d;]*m/gu;

/**
 * Makes a text safe for a terminal. Lines and tabs stay; everything else that is not plain text becomes U+FFFD. All
 * text from outside passes through here before a person sees it.
 */
export const printable = (text: string): string =>
  unmarked(text)
    .replaceAll(colour, "")
    .replaceAll(/\r{1,2}\n/g, "\n")
    .replaceAll(unprintable, "\uFFFD");

/** Line breaks, control characters, and characters that are invisible or change the order of others. */
const notInLine = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const longestLine = 500;

/**
 * Turns one piece of text from outside (a node, a tag, an engine, a server) into one line that a
 * message of ours can quote: no line breaks, no control characters, nothing that a CI system takes
 * for a command, and at most `longest` characters. Anything but a text becomes an empty line. It is
 * marked, so that secrets in it are masked. Callers that quote text from outside use this, or one
 * of the functions below. Takes linear time, and looks only at the beginning of a long text.
 */
export const outsideLine = (found: unknown, longest?: number): string =>
  outside(plainLine(found, longest));

/** Like `outsideLine` without marks, for data and tables. A message that quotes the line must mark it. */
export function plainLine(found: unknown, longest: number = longestLine): string {
  if (typeof found !== "string") return "";
  const line = unmarked(found)
    .trimStart()
    .slice(0, 4 * longest)
    .replaceAll(colour, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(notInLine, "\uFFFD");
  return withoutCommands(shortened(line.trim(), longest));
}

/** How much of the end of a text is searched for lines. */
const reach = 100_000;

/** The last `count` lines that aren't blank, each as `outsideLine` has it. */
export const outsideLines = (text: string, count: number, longest?: number): string[] =>
  plainLines(text, count, longest).map(outside);

/** Like `outsideLines` without marks, for data. */
export function plainLines(text: string, count: number, longest?: number): string[] {
  const lines: string[] = [];
  const end = text.trimEnd().slice(-reach);
  for (let stop = end.length; stop > 0 && lines.length < count;) {
    const start = end.lastIndexOf("\n", stop - 1) + 1;
    const line = plainLine(end.slice(start, stop), longest);
    if (line !== "") lines.unshift(line);
    stop = start - 1;
  }
  return lines;
}

/**
 * The last line that isn't blank, without the full stop, for a sentence of ours that ends with it.
 * It usually says why a program failed. Empty if the text is blank.
 */
export const outsideReason = (text: string): string =>
  withoutFullStop(outsideLines(text, 1)[0] ?? "");

/** Removes punctuation and spaces at the end. A regular expression would take quadratic time. */
export function withoutFullStop(given: string): string {
  if (isMarked(given)) return outside(withoutFullStop(unmarked(given)));
  const line = given;
  let end = line.length;
  while (end > 0 && ".:?! ".includes(line[end - 1] ?? "")) end -= 1;
  return line.slice(0, end);
}

const mostLines = 200;
const longestOwnLine = 4000;

/**
 * Formats one of our messages, which may quote others, for a terminal or a log. Only the first line
 * begins at the margin, so that no quoted line can pass for one of ours. The length is limited, in
 * case a message quotes more than it should.
 */
export function messageBlock(message: string): string {
  const [first = "", ...others] = message.trimEnd().split("\n", mostLines + 1);
  const shown = others
    .slice(0, mostLines - 1)
    .map((line) => (line.startsWith("  ") ? line : `  ${line}`));
  const more = others.length < mostLines ? [] : ["  …"];
  return [first, ...shown, ...more]
    .map((line) => withoutCommands(shortened(line, longestOwnLine)))
    .join("\n");
}

/**
 * CI systems obey lines of output such as `::error::…`, `##[…]`, `##vso[…]` and `##teamcity[…]`,
 * some of them even in the middle of a line. A space makes such a text ineffective: `: :error::…`,
 * `# #vso[…]`.
 */
export const withoutCommands = (text: string): string =>
  text.replaceAll(/(?<!\S)::(?=[a-z])/gi, ": :").replaceAll(/##(?=[a-z]{0,20}\[)/gi, "# #");

/** Cuts at a space if there is one near the end, so that no word, which might be a secret, loses only its end. */
function shortened(line: string, longest: number): string {
  if (line.length <= longest) return line;
  const cut = line.slice(0, longest - 1);
  const space = cut.lastIndexOf(" ");
  return `${(space > longest / 2 ? cut.slice(0, space) : cut).trimEnd().toWellFormed()}…`;
}

export const isPlainLine = (text: string): boolean =>
  !/[\n\t]/.test(text) && printable(text) === text;

/** Masks before, because a secret may contain unprintable characters, and after, because colours may have split it. */
export function maskedPrintable(text: string, mask: (text: string) => string): string {
  const masked = mask(text);
  const shown = printable(masked);
  return shown === masked ? masked : mask(shown);
}

/** One of our own texts for people: what it quotes is masked. */
export const shownText = (text: string, mask: (text: string) => string): string =>
  mapOutside(text, (part) => maskedPrintable(part, mask), printable);

/** Returns JSON for terminals. Escapes unprintable characters and the beginnings of a CI system's commands. */
export const printableJson = (data: unknown): string =>
  JSON.stringify(data, null, 2)
    .replaceAll(unprintable, (character) => character.split("").map(unicodeEscape).join(""))
    .replaceAll("##", `#${unicodeEscape("#")}`);

/** The escape of one UTF-16 code unit in JSON, YAML and other languages. */
export const unicodeEscape = (unit: string): string =>
  `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
