/**
 * What makes a terminal act, hides text or turns its order around: control characters but tab and newline, bidirectional controls, line
 * separators that are no newline, invisible characters that nothing is written with, halves of characters.
 */
const unprintable =
  /[^\P{Cc}\n\t]|[\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u2069\uFEFF\uFFF9-\uFFFB]|[\u{E0000}-\u{E007F}]|\p{Cs}/gu;
/** Logs are full of them. They go without a trace; of any other sequence the rest stays, behind a replacement character. */
const colour = /[^\P{Cc}\n\t]\[[\d;]*m/gu;

/**
 * The text as a terminal may have it: lines and tabs stay, everything else that is more than text becomes U+FFFD. All text from outside goes
 * through here on its way to a person.
 */
export const printable = (text: string): string =>
  text.replaceAll(colour, "").replaceAll("\r\n", "\n").replaceAll(unprintable, "\uFFFD");

/** The same in one line, for a value inside a line or a table: it can't begin a line of its own. */
export const printableLine = (text: string): string => printable(text).replaceAll(/[\n\t]/g, " ");

/** Masked before, since a secret may hold what isn't printable, and after, since colours may have parted it. */
export function maskedPrintable(text: string, mask: (text: string) => string): string {
  const masked = mask(text);
  const shown = printable(masked);
  return shown === masked ? masked : mask(shown);
}

/** A value as JSON text for terminals: what isn't printable is escaped, which changes no value. */
export const printableJson = (data: unknown): string =>
  JSON.stringify(data, null, 2).replaceAll(unprintable, (character) =>
    Array.from({ length: character.length }, (_, index) => escaped(character.charCodeAt(index))).join(""),
  );

const escaped = (unit: number): string => `\\u${unit.toString(16).padStart(4, "0")}`;
