/**
 * Breaks text at spaces into lines of at most `width` columns. A longer word gets a line to itself. Empty lines separate paragraphs. Uses no
 * patterns, because compiling one takes longer than the rest of a program's help.
 */
export function wrap(text: string, width: number): readonly string[] {
  return text.split("\n\n").flatMap((paragraph, index) => {
    const lines = wrapParagraph(paragraph, width);
    return index === 0 ? lines : ["", ...lines];
  });
}

function wrapParagraph(paragraph: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of paragraph.replaceAll("\n", " ").split(" ")) {
    const last = lines.at(-1);
    if (word === "") continue;
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Two columns. The left one is as wide as its widest entry, up to a limit; a wider entry gets a line to itself. */
export function columns(rows: readonly (readonly [left: string, right: string])[], width: number): readonly string[] {
  const limit = Math.min(34, Math.floor(width / 2));
  const fitting = rows.map(([left]) => left.length).filter((length) => length <= limit);
  const indent = Math.max(0, ...fitting) + 4;
  return rows.flatMap(([left, right]) => {
    const lines = wrap(right, Math.max(20, width - indent)).map((line) => `${" ".repeat(indent)}${line}`.trimEnd());
    const [first = "", ...others] = lines;
    if (left.length > indent - 4) return [`  ${left}`, ...lines];
    return [`  ${left}`.padEnd(indent) + first.slice(indent), ...others];
  });
}
