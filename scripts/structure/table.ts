import type { Measures } from "./measure.ts";

export interface Column {
  readonly name: string;
  readonly measures: Measures;
}

/** A row of the table: a text for each checkout, and for this project the most that it may be. */
interface Row {
  readonly title: string;
  /** One figure, or the three of a distribution. Undefined: it cannot be said of this checkout. */
  readonly figures: (measures: Measures) => readonly number[] | undefined;
  /** As many as there are figures. */
  readonly goals?: readonly number[];
}

const rows: readonly Row[] = [
  { title: "tokens without comments", figures: ({ tokens }) => [tokens], goals: [350_000] },
  {
    title: "bytes per line",
    figures: ({ bytes, lines }) => [tenth(bytes / lines)],
    goals: [40],
  },
  {
    title: "relative imports / exports per file",
    figures: ({ relativeImports, exports, modules }) => [
      tenth(relativeImports / modules),
      tenth(exports / modules),
    ],
    goals: [6, 4],
  },
  { title: "named types", figures: ({ namedTypes }) => [namedTypes], goals: [700] },
  {
    title: "function length p50 / p90 / max",
    figures: ({ functionLengths }) => distribution(functionLengths),
    goals: [7, 20, 60],
  },
  {
    title: "longest file",
    figures: ({ fileLengths }) => [Math.max(...fileLengths)],
    goals: [400],
  },
  {
    title: "most files in one folder",
    figures: ({ mostFilesInFolder }) => [mostFilesInFolder],
    goals: [20],
  },
  {
    title: "files under 40 lines with one importer",
    figures: ({ imports }) => [imports.shortWithOneImporter.length],
  },
  {
    title: "members of the backend's contract",
    figures: ({ contractMembers }) =>
      contractMembers === undefined ? undefined : [contractMembers],
    goals: [28],
  },
  {
    title: "import cycles",
    figures: ({ imports }) => [imports.cycles.length],
    goals: [0],
  },
  {
    title: "upward imports",
    figures: ({ imports }) => (imports.upward === undefined ? undefined : [imports.upward.length]),
    goals: [0],
  },
];

/** The most files and types that some flows of CONTRIBUTING may list. */
const flowGoals = new Map([
  ["`create` on the cloud, to the launch request", 7],
  ["the request of a creation through its types", 4],
]);

/** A table in Markdown with one column for each checkout, and the goals of this project. A dash stands for what cannot be said of a checkout. */
export function structureTable(columns: readonly Column[]): string {
  const cells = [
    ["", ...columns.map(({ name }) => name), "goal"],
    ["---", ...columns.map(() => "---"), "---"],
    ...allRows(columns).map(({ title, figures, goals }) => [
      title,
      ...columns.map(({ measures }) => figures(measures)?.join(" / ") ?? "–"),
      goals === undefined ? "" : `≤ ${goals.join(" / ")}`,
    ]),
  ];
  return cells.map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/** The titles of the rows whose goal this project misses. A row that cannot be measured misses its goal. */
export function missedGoals(measures: Measures): readonly string[] {
  return allRows([{ name: "", measures }])
    .filter(({ goals = [], figures }) => {
      const found = figures(measures) ?? [];
      return goals.some((goal, index) => !((found[index] ?? Number.POSITIVE_INFINITY) <= goal));
    })
    .map(({ title }) => title);
}

function allRows(columns: readonly Column[]): readonly Row[] {
  const titles = new Set(
    columns.flatMap(({ measures }) => measures.flows.map(({ title }) => title)),
  );
  const flowRows = [...titles].map((title): Row => {
    const goal = flowGoals.get(title);
    return {
      title: `files to open to follow ${title}`,
      figures: ({ flows }) => {
        const flow = flows.find((each) => each.title === title);
        return flow && [flow.files.length];
      },
      ...(goal !== undefined && { goals: [goal] }),
    };
  });
  return [...rows, ...flowRows];
}

const tenth = (value: number): number => Math.round(value * 10) / 10;

function distribution(lengths: readonly number[]): readonly number[] {
  const sorted = lengths.toSorted((one, other) => one - other);
  return [0.5, 0.9, 1].map((part) => sorted[Math.ceil(part * sorted.length) - 1] ?? 0);
}
