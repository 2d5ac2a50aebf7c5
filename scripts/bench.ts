/**
 * Measures how much time the programs add to what the machines need, and how much faster a restored cluster is ready than
 * a new one. Prints a table of ratios to references from the same run, and writes it with all figures to dist/bench.json.
 * Needs what `scripts/test e2e` needs, rsync, clustershell and built executables. CONTRIBUTING.md describes the rows.
 * Usage: bun run bench [start-up] [size] [questions] [create] [sync] [run] [run-many] [wait] [report] [watch] [containers] [through-engine] [example] [dcos] [container-snapshots] [container-files] [vm-snapshots] [vms] [vm-templates] [tests] [all-tests]
 */
import { join } from "node:path";
import { programs } from "./build.ts";
import { measureContainerFiles } from "./bench/container-files.ts";
import { measureContainers } from "./bench/containers.ts";
import { createRows, measureCreate } from "./bench/create.ts";
import { measureDcos } from "./bench/dcos.ts";
import { measureExample } from "./bench/example.ts";
import type { Row } from "./bench/measure.ts";
import { measureQuestions } from "./bench/questions.ts";
import { measureRunMany } from "./bench/run-many.ts";
import { measureRun } from "./bench/run-command.ts";
import { measureReport } from "./bench/report.ts";
import { measureContainerSnapshots, measureVmSnapshots } from "./bench/snapshots.ts";
import { measureSizes, measureStartUp } from "./bench/start-up.ts";
import { measureSync } from "./bench/sync.ts";
import { allTests, measureTests, quickTests } from "./bench/tests.ts";
import { measureThroughEngine } from "./bench/through-engine.ts";
import { measureVmTemplates } from "./bench/vm-templates.ts";
import { measureVms } from "./bench/vms.ts";
import { measureWatch } from "./bench/watch.ts";
import { measureWait } from "./bench/wait.ts";

const dist = join(import.meta.dir, "..", "dist");
const executable = join(dist, "cluster-cloud");

interface Bench {
  readonly rows: Iterable<Row> | AsyncIterable<Row>;
  readonly figures?: unknown;
}

const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  "start-up": async () => ({ rows: await measureStartUp(executable) }),
  size: async () => ({
    rows: await measureSizes((await programs()).map((name) => join(dist, name))),
  }),
  questions: async () => ({ rows: await measureQuestions(executable) }),
  create: async () => {
    const figures = await measureCreate(executable);
    return { rows: createRows(figures), figures };
  },
  sync: async () => ({ rows: await measureSync(executable) }),
  run: async () => ({ rows: await measureRun(executable) }),
  "run-many": async () => ({ rows: await measureRunMany(executable) }),
  wait: async () => ({ rows: measureWait(executable) }),
  report: async () => ({ rows: await measureReport(join(dist, "cluster-container")) }),
  watch: async () => ({ rows: await measureWatch(join(dist, "cluster-container")) }),
  containers: async () => ({ rows: measureContainers(join(dist, "cluster-container")) }),
  "through-engine": async () => ({
    rows: await measureThroughEngine(join(dist, "cluster-container")),
  }),
  example: async () => ({ rows: await measureExample(join(dist, "cluster-container")) }),
  dcos: async () => ({ rows: [await measureDcos(join(dist, "cluster-container"))] }),
  "container-snapshots": async () => ({
    rows: [await measureContainerSnapshots(join(dist, "cluster-container"))],
  }),
  "container-files": async () => ({
    rows: await measureContainerFiles(join(dist, "cluster-container")),
  }),
  "vm-snapshots": async () => ({ rows: measureVmSnapshots(join(dist, "cluster-vm")) }),
  vms: async () => ({ rows: measureVms(join(dist, "cluster-vm")) }),
  "vm-templates": async () => ({ rows: measureVmTemplates(join(dist, "cluster-vm")) }),
  tests: async () => ({ rows: [await measureTests(quickTests)] }),
  "all-tests": async () => ({ rows: [await measureTests(allTests)] }),
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in benches));
if (unknown.length > 0)
  throw new Error(
    `no such benchmark: ${unknown.join(", ")}; choose from: ${Object.keys(benches).join(", ")}`,
  );

const results: Record<string, { readonly rows: Row[]; readonly figures?: unknown }> = {};
const failed: string[] = [];
console.log("| what | value | reference | ratio | limit |\n| --- | --- | --- | --- | --- |");
for (const [name, bench] of Object.entries(benches)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  try {
    const { rows, ...more } = await bench();
    const result = (results[name] = { rows: [] as Row[], ...more });
    for await (const row of rows) {
      result.rows.push(row);
      printRow(row);
    }
  } catch (error) {
    // What the others measure in half an hour must not be lost.
    failed.push(name);
    console.error(`${name} failed:`, error);
    process.exitCode = 1;
  }
  await Bun.write(join(dist, "bench.json"), `${JSON.stringify(results, undefined, 2)}\n`);
}
const rows = Object.values(results).flatMap((result) => result.rows);
const missing = rows.filter(({ ratio, limit }) => limit !== undefined && !(ratio.median <= limit));
console.log(
  `\n${missing.length === 0 ? "No row exceeds its limit." : "These rows exceed their limit:"}`,
);
for (const { what, ratio, limit } of missing)
  console.log(`- ${what}: ${ratio.median.toFixed(2)}, limit ${limit}`);
if (failed.length > 0) console.log(`These could not be measured: ${failed.join(", ")}`);

function printRow(row: Row): void {
  const { median, lower, upper } = row.ratio;
  const ratio = `${median.toFixed(2)}${lower === upper ? "" : ` (${lower.toFixed(2)} to ${upper.toFixed(2)})`}`;
  console.log(`| ${row.what} | ${row.value} | ${row.reference} | ${ratio} | ${row.limit ?? ""} |`);
}
