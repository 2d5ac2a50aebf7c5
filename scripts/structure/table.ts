import type { Measures } from "./measure.ts";

export interface Column {
  readonly name: string;
  readonly measures: Measures;
}

/** A table in Markdown with one column for each checkout. A dash stands for what cannot be said of one. */
export function structureTable(columns: readonly Column[]): string {
  const titles = [...new Set(columns.flatMap(({ measures }) => measures.flows.map(({ title }) => title)))];
  const rows: readonly (readonly [string, (measures: Measures) => string | number | undefined])[] = [
    ["lines of source", ({ lines }) => `${(lines / 1000).toFixed(1)}k`],
    ["file length p50 / p90 / max", ({ fileLengths }) => spread(fileLengths)],
    ["function length p50 / p90 / max", ({ functionLengths }) => spread(functionLengths)],
    ["most files in one folder", ({ mostFilesInFolder }) => mostFilesInFolder],
    ["imports per file", ({ imports }) => imports?.perFile.toFixed(1)],
    ["import cycles", ({ imports }) => imports?.cycles.length],
    ["upward imports", ({ imports }) => imports?.upward?.length],
    ...titles.map((title) => {
      const count = ({ flows }: Measures): number | undefined =>
        flows.find((flow) => flow.title === title)?.files.length;
      return [`files to open to follow ${title}`, count] as const;
    }),
  ];
  const cells = [
    ["", ...columns.map(({ name }) => name)],
    ["---", ...columns.map(() => "---")],
    ...rows.map(([title, cell]) => [title, ...columns.map(({ measures }) => String(cell(measures) ?? "–"))]),
  ];
  return cells.map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function spread(lengths: readonly number[]): string {
  const sorted = lengths.toSorted((one, other) => one - other);
  return [0.5, 0.9, 1].map((part) => sorted[Math.ceil(part * sorted.length) - 1] ?? "–").join(" / ");
}
