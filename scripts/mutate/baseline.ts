import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Mutant } from "./find-mutants.ts";
import { runTests } from "./run-tests.ts";
import type { TreeCopy } from "./tree-copy.ts";

/** What is known about a test file from a run without any mutant. */
export interface TestFile {
  readonly path: string;
  readonly passes: boolean;
  readonly seconds: number;
  /** For each source file, the lines that the test executes, and all lines that can be executed. */
  readonly lines: ReadonlyMap<string, Lines>;
  /** There are programs in the same folder, which it may start. The lines that they execute are not known. */
  readonly hasPrograms: boolean;
}

interface Lines {
  readonly run: ReadonlySet<number>;
  readonly all: ReadonlySet<number>;
}

/** These tests don't execute anything in src. */
const notOfSources = /^test\/(?:unit|integration)\/(?:scripts|local-cloud)\/|^test\/unit\/[^/]*$/;

/** The test files of a copy that may detect a mutant. */
export const listTestFiles = (root: string): readonly string[] =>
  [...new Bun.Glob("test/{unit,integration}/**/*.test.ts").scanSync(root)]
    .filter((path) => !notOfSources.test(path))
    .toSorted();

/** Runs one test file alone, and records which lines it executes. */
export async function measureTestFile(
  copy: TreeCopy,
  path: string,
  signal: AbortSignal,
): Promise<TestFile> {
  const coverage = join(copy.path, "coverage");
  const moreArgs = ["--coverage", "--coverage-reporter=lcov", "--coverage-dir=coverage"];
  const { outcome, seconds } = await runTests(
    copy,
    [path],
    { limitSeconds: 300, moreArgs },
    signal,
  );
  const report = await Bun.file(join(coverage, "lcov.info"))
    .text()
    .catch(() => "");
  await rm(coverage, { recursive: true, force: true });
  const beside = await readdir(dirname(join(copy.path, path)));
  const hasPrograms = beside.some((name) => name.endsWith("-program.ts"));
  return { path, passes: outcome === "passed", seconds, lines: readCoverage(report), hasPrograms };
}

/** Parses lcov's format. */
export function readCoverage(report: string): ReadonlyMap<string, Lines> {
  const records = report.split("end_of_record").map((record) => {
    const path = /^SF:(.+)$/m.exec(record)?.[1] ?? "";
    const counts = [...record.matchAll(/^DA:(\d+),(\d+)$/gm)].map(([, line, count]) => ({
      line: Number(line),
      count: Number(count),
    }));
    const run = counts.filter(({ count }) => count > 0).map(({ line }) => line);
    return [path, { run: new Set(run), all: new Set(counts.map(({ line }) => line)) }] as const;
  });
  return new Map(records.filter(([path]) => path.startsWith("src/")));
}

/** Whether the test file executes the lines of a mutant. If they are not counted, the nearest counted line above them decides. */
export function reaches({ lines }: TestFile, { path, line, lastLine }: Mutant): boolean {
  const known = lines.get(path);
  if (known === undefined) return false;
  for (let each = line; each <= lastLine; each += 1) if (known.run.has(each)) return true;
  let above = line;
  while (above > 0 && !known.all.has(above)) above -= 1;
  return known.run.has(above);
}
