import { mapOutside, unmarked } from "../outside-text.ts";

/**
 * Characters that control a terminal, hide text or reverse its order: control characters except tab and newline,
 * bidirectional controls, line separators other than newline, invisible characters that no language needs, and lone
 * surrogates.
 */
const unprintable =
  /[^\P{Cc}\n\t]|[\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u2069\uFEFF\uFFF9-\uFFFB]|[\u{E0000}-\u{E007F}]|\p{Cs}/gu;
/**
 * Colour sequences, which are common in logs and are removed. Any other escape sequence stays, with a replacement
 * character for its first one.
 */
const colour = /[^\P{Cc}\n\t]\[[\d;]*m/gu;

/**
 * Makes a text safe for a terminal. Lines and tabs stay; everything else that is not plain text becomes U+FFFD. All
 * text from outside passes through here before a person sees it.
 */
export const printable = (text: string): string =>
  unmarked(text).replaceAll(colour, "").replaceAll("\r\n", "\n").replaceAll(unprintable, "\uFFFD");

/** The same in one line, for a value inside a line or a table, so that it can't start a new line. */
export const printableLine = (text: string): string => printable(text).replaceAll(/[\n\t]/g, " ");

/** Masks before, because a secret may contain unprintable characters, and after, because colours may have split it. */
export function maskedPrintable(text: string, mask: (text: string) => string): string {
  const masked = mask(text);
  const shown = printable(masked);
  return shown === masked ? masked : mask(shown);
}

/** One of our own texts for people: what it quotes is masked. */
export const shownText = (text: string, mask: (text: string) => string): string =>
  mapOutside(text, (part) => maskedPrintable(part, mask), printable);

/** A value as JSON text for terminals. Unprintable characters are escaped, which changes no value. */
export const printableJson = (data: unknown): string =>
  JSON.stringify(data, null, 2).replaceAll(unprintable, (character) =>
    Array.from({ length: character.length }, (_, index) => escaped(character.charCodeAt(index))).join(""),
  );

const escaped = (unit: number): string => `\\u${unit.toString(16).padStart(4, "0")}`;
