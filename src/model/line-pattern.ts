/**
 * Patterns that find lines of logs: a line matches if it contains the pattern's texts in their
 * order, with anything where the pattern has `*`.
 */

/** Shorter texts are in almost every line. */
const leastText = 3;
const longestPattern = 200;

const textsOf = (pattern: string): readonly string[] => pattern.split("*");

export const isLinePattern = (found: string): boolean =>
  found.length <= longestPattern && textsOf(found).some((text) => text.length >= leastText);

/** Takes linear time: each text is searched for behind the one before. */
export function matchesLine(pattern: string, line: string): boolean {
  let position = 0;
  for (const text of textsOf(pattern)) {
    const start = line.indexOf(text, position);
    if (start < 0) return false;
    position = start + text.length;
  }
  return true;
}

/** A POSIX extended regular expression for what every matching line contains. */
export const expressionOf = (pattern: string): string =>
  textsOf(pattern)
    .reduce((longest, text) => (text.length > longest.length ? text : longest))
    .replaceAll(/[\\^$.[\]|()?*+{}]/g, "\\$&");
