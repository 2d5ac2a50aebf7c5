/** Reads the JUnit reports of Bun. */

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export interface FileReport {
  readonly counts: Counts;
  readonly seconds: number;
  /** Why each skipped test was skipped: what its name, or that of its group, has in parentheses. */
  readonly skips: readonly string[];
}

/** Returns what a report says about a file. A file that can't be loaded, or that ends the process, is in no report. */
export function readReport(file: string, report: string, status: number): FileReport {
  const lines = report.split("\n");
  const first = lines.findIndex((text) => text.startsWith(`  <testsuite name="${file}" `));
  const head = lines[first];
  if (head === undefined) {
    const counts = { passed: 0, failed: status === 0 ? 0 : 1, skipped: 0 };
    return { counts, seconds: 0, skips: [] };
  }
  const reported = (name: string): number =>
    Number(new RegExp(` ${name}="([0-9.]*)"`).exec(head)?.[1] ?? 0);
  const [failed, skipped] = [reported("failures"), reported("skipped")];
  const last = lines.indexOf("  </testsuite>", first);
  return {
    counts: { passed: reported("tests") - skipped - failed, failed, skipped },
    seconds: reported("time"),
    skips: readSkips(file, lines.slice(first, last)),
  };
}

function readSkips(file: string, lines: readonly string[]): readonly string[] {
  return lines.flatMap((line, index) => {
    if (!line.trimStart().startsWith("<skipped")) return [];
    const names = /<testcase name="([^"]*)" classname="([^"]*)"/.exec(lines[index - 1] ?? "");
    return [reasonIn(names?.[1]) ?? reasonIn(names?.[2]) ?? `${file} doesn't say why`];
  });
}

const entities = { quot: '"', apos: "'", lt: "<", gt: ">", amp: "&" } as const;

function reasonIn(name = ""): string | undefined {
  const begin = name.lastIndexOf("(");
  const end = name.indexOf(")", begin);
  if (begin < 0 || end < 0) return undefined;
  return name
    .slice(begin + 1, end)
    .replace(/^skipped: /, "")
    .replaceAll(/&(quot|apos|lt|gt|amp);/g, (_, entity: keyof typeof entities) => entities[entity]);
}
