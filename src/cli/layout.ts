import { isMarked, outside } from "../outside-text.ts";
import { plainLine } from "../system/printable.ts";

/**
 * Breaks text at spaces into lines of at most `width` columns. A longer word gets a line to itself.
 * From the second line of each line of the text on, lines are indented by `hang` columns more than
 * the first. Lines that are indented by four or more stay as they are: they hold commands to copy.
 * Uses no patterns, because compiling one takes longer than the rest of a program's help.
 */
export const wrap = (text: string, width: number, hang = 0): readonly string[] =>
  text === ""
    ? []
    : text
        .split("\n")
        .flatMap((line) => (line.startsWith("    ") ? [line] : wrapLine(line, width, hang)));

function wrapLine(line: string, width: number, hang: number): readonly string[] {
  const indent = line.length - line.trimStart().length;
  if (Bun.stringWidth(line) <= width) return [line.trimEnd()];
  const lines: string[] = [];
  const used = { columns: 0 };
  for (const word of line.trimStart().split(" ")) {
    if (word === "") continue;
    const taken = Bun.stringWidth(word);
    const last = lines.at(-1);
    if (last !== undefined && used.columns + 1 + taken <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
      used.columns += 1 + taken;
    } else {
      const margin = last === undefined ? indent : indent + hang;
      lines.push(" ".repeat(margin) + word);
      used.columns = margin + taken;
    }
  }
  return lines;
}

/** Two columns. The left one is as wide as its widest entry, up to a limit; a wider entry gets a line to itself. */
export function columns(
  rows: readonly (readonly [left: string, right: string])[],
  width: number,
  { margin = 2, hang = 0 }: { readonly margin?: number; readonly hang?: number } = {},
): readonly string[] {
  const limit = Math.min(34, Math.floor(width / 2));
  const fitting = rows.map(([left]) => Bun.stringWidth(left)).filter((each) => each <= limit);
  const indent = margin + Math.max(0, ...fitting) + 2;
  return rows.flatMap(([left, right]) => {
    const lines = wrap(right, Math.max(20, width - indent), hang).map((line) =>
      `${" ".repeat(indent)}${line}`.trimEnd(),
    );
    const [first = "", ...others] = lines;
    const padded = `${" ".repeat(margin)}${left}`;
    if (Bun.stringWidth(padded) > indent - 2) return [padded, ...lines];
    return [
      (padded + " ".repeat(indent - Bun.stringWidth(padded)) + first.slice(indent)).trimEnd(),
      ...others,
    ];
  });
}

export const pairs = (rows: readonly (readonly [label: string, value: string])[], width: number): string =>
  columns(rows.map(([label, value]) => [plainLine(label), plainLine(value)]), width, { margin: 0 }).join("\n"); // prettier-ignore

const gap = "  ";

/**
 * A table whose first row are the heads. Columns are as wide as their widest cell, with two spaces between them and no
 * trailing spaces. A cell can't start a new line. In a table that is wider than `width`, the widest cells wrap at
 * words. If the names in the first column alone are too wide, each gets a line to itself. Cells that are marked as
 * outside text stay so, but for those names.
 */
export function table(cells: readonly (readonly string[])[], width: number): string {
  const rows = cells.map((row) => row.map((cell) => plainLine(cell)));
  const marks = cells.map((row) => row.map(isMarked));
  const widths = fittingWidths(rows, width);
  const isTooWide =
    totalOf(widths) > width && widths[0] === Math.max(...widths) && widths.length > 2;
  if (!isTooWide) return rows.flatMap((row, at) => rowLines(row, widths, marks[at])).join("\n");
  const [, ...others] = fittingWidths(rows.map(([, ...rest]) => ["", ...rest]), width); // prettier-ignore
  return rows
    .flatMap(([first = "", ...rest], at) => [
      first,
      ...rowLines(rest, others, marks[at]?.slice(1)).map((line) => `${gap}${line}`),
    ])
    .join("\n");
}

const totalOf = (widths: readonly number[]): number =>
  widths.reduce((sum, each) => sum + each, gap.length * (widths.length - 1));

function fittingWidths(rows: readonly (readonly string[])[], width: number): readonly number[] {
  const widest = (of: (cell: string) => number): number[] => {
    const found: number[] = [];
    for (const row of rows)
      row.forEach((cell, at) => (found[at] = Math.max(found[at] ?? 0, of(cell))));
    return found;
  };
  const widths = widest((cell) => Bun.stringWidth(cell));
  // A longer word, such as a path, sticks out.
  const longestWord = (cell: string): number =>
    Math.min(
      Math.floor(width / 2),
      Math.max(...cell.split(" ").map((word) => Bun.stringWidth(word))),
    );
  const [head = []] = rows;
  // The heads wrap first, so that each row keeps to one line if it can.
  const headsOnly = widest((cell) =>
    head.includes(cell) ? longestWord(cell) : Bun.stringWidth(cell),
  );
  for (const least of [headsOnly, widest(longestWord)]) {
    while (totalOf(widths) > width) {
      const spare = widths.map((each, at) => (each > (least[at] ?? 0) ? each : 0));
      const most = Math.max(...spare);
      if (most === 0) break;
      widths[spare.indexOf(most)] = most - 1;
    }
  }
  return widths;
}

function rowLines(
  row: readonly string[],
  widths: readonly number[],
  marks: readonly boolean[] = [],
): readonly string[] {
  const wrapped = row.map((cell, at) => wrap(cell, widths[at] ?? 0));
  const height = Math.max(1, ...wrapped.map((lines) => lines.length));
  return Array.from({ length: height }, (_, line) =>
    wrapped
      .map((lines, at) => {
        const text = lines[line] ?? "";
        const padding = "".padEnd((widths[at] ?? 0) - Bun.stringWidth(text));
        return `${marks[at] === true ? outside(text) : text}${padding}`;
      })
      .join(gap)
      .trimEnd(),
  );
}
