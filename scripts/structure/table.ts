import type { Measures } from "./measure.ts";

/** A row of the table, and the most that its figures may be. */
interface Row {
  readonly title: string;
  /** One figure, or the three of a distribution. */
  readonly figures: (measures: Measures) => readonly number[];
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
    figures: ({ contractMembers }) => [contractMembers],
    goals: [28],
  },
  {
    title: "import cycles",
    figures: ({ imports }) => [imports.cycles.length],
    goals: [0],
  },
  {
    title: "upward imports",
    figures: ({ imports }) => [imports.upward.length],
    goals: [0],
  },
];

/** The most files and types that some flows of CONTRIBUTING may list. */
const flowGoals = new Map([
  ["`create` on the cloud, to the launch request", 7],
  ["the request of a creation through its types", 4],
]);

/** A table in Markdown. */
export function structureTable(measures: Measures): string {
  const cells = [
    ["", "this project", "goal"],
    ["---", "---", "---"],
    ...allRows(measures).map(({ title, figures, goals }) => [
      title,
      figures(measures).join(" / "),
      goals === undefined ? "" : `≤ ${goals.join(" / ")}`,
    ]),
  ];
  return cells.map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/** The titles of the rows whose goal is missed. */
export function missedGoals(measures: Measures): readonly string[] {
  return allRows(measures)
    .filter(({ goals = [], figures }) => {
      const found = figures(measures);
      return goals.some((goal, index) => !((found[index] ?? Number.POSITIVE_INFINITY) <= goal));
    })
    .map(({ title }) => title);
}

function allRows({ flows }: Measures): readonly Row[] {
  const flowRows = flows.map(({ title, files }): Row => {
    const goal = flowGoals.get(title);
    return {
      title: `files to open to follow ${title}`,
      figures: () => [files.length],
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
