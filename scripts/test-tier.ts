/**
 * Runs the tests of a tier, several files at a time. Prints the output of each file in one piece when the file has ended. An
 * integration or e2e file that fails runs once more when all others have ended, because on a busy computer a generous time
 * limit may pass. Prints "PASSED FAILED SKIPPED" on stdout, then one line for each file that passed only the second time.
 * Usage: bun run scripts/test-tier.ts unit|integration|e2e|faults [--quick]
 *   --quick  Leave out the files that take minutes, and print their names
 */
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { groupTests, longestFirst, type TestGroups } from "./test-groups.ts";

const processors = availableParallelism();
/** Most tests wait for machines most of the time, so that two processors can do more than two files at once. */
const integrationWorkers = Math.min(2 * processors, 8);
const e2eWorkers = Math.min(Math.max(processors, 2), 4);
/** Where no file keeps the processors busy, one more fills the time in which the others wait for machines. */
const e2eWorkersAlone = e2eWorkers + 1;
const mostAgain = 5;

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

interface Ran {
  readonly file: string;
  readonly counts: Counts;
}

const running = new Map<ReturnType<typeof Bun.spawn>, { readonly name: string; text: string }>();

interface Tier {
  readonly name: string;
  readonly files: readonly string[];
  readonly groups: TestGroups;
}

async function readTier(name: string, isQuick: boolean): Promise<Tier> {
  const found = await Array.fromAsync(new Bun.Glob(`test/${name}/**/*.test.ts`).scan());
  const all = found.toSorted((one, other) => (one < other ? -1 : 1));
  const groups = await groupTests(all);
  if (!isQuick) return { name, files: all, groups };
  for (const [file, reason] of groups.slow)
    process.stderr.write(`left out: ${file}, which ${reason}\n`);
  return { name, files: all.filter((file) => !groups.slow.has(file)), groups };
}

interface TestRun extends Pick<Tier, "files" | "groups"> {
  /** Further words of `bun test`. */
  readonly words?: readonly string[];
}

/** Runs `bun test` once, and prints its whole output when it has ended. Resolves with the counts of each file. */
async function runBunTest(
  name: string,
  { files, words = [], groups }: TestRun,
  reports: string,
): Promise<readonly Ran[]> {
  const report = join(reports, `${name.replaceAll("/", "-")}.xml`);
  // The limit of tests that set none of their own. Bun's five seconds are too short on a busy computer.
  const argv = [
    process.execPath,
    "test",
    ...files.map((file) => `./${file}`),
    ...words,
    "--timeout=120000",
    "--reporter=junit",
    `--reporter-outfile=${report}`,
  ];
  const child = Bun.spawn(argv, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const output = { name, text: "" };
  running.set(child, output);
  if (files.every((file) => groups.busy.has(file))) preferProcess(child.pid);
  const started = performance.now();
  await Promise.all([child.stdout, child.stderr].map(async (stream) => follow(stream, output)));
  const status = await child.exited;
  running.delete(child);
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  process.stderr.write(
    `\n${tidied(output.text)}${name}: ended with ${status} after ${seconds} s\n`,
  );
  const text = await Bun.file(report)
    .text()
    .catch(() => "");
  const ran = files.map((file) => ({ file, counts: countsOf(file, text, status) }));
  if (status === 0 || ran.some(({ counts }) => counts.failed > 0)) return ran;
  return [...ran, { file: name, counts: { passed: 0, failed: 1, skipped: 0 } }];
}

function preferProcess(pid: number): void {
  try {
    setPriority(pid, -5);
  } catch {
    // Only root may do this.
  }
}

async function follow(stream: ReadableStream<Uint8Array>, output: { text: string }): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) output.text += decoder.decode(chunk, { stream: true });
}

/** Removes Bun's version and repeated empty lines. */
function tidied(text: string): string {
  return `${text
    .replace(/^bun test v.*\n/gm, "")
    .replace(/\n{3,}/g, "\n\n")
    .trim()}\n`;
}

/** Returns what a JUnit report says about a file. A file that can't be loaded, or that ends the process, is in no report. */
function countsOf(file: string, report: string, status: number): Counts {
  const line = report.split("\n").find((text) => text.startsWith(`  <testsuite name="${file}" `));
  if (line === undefined) return { passed: 0, failed: status === 0 ? 0 : 1, skipped: 0 };
  const reported = (name: string): number =>
    Number(new RegExp(` ${name}="([0-9]*)"`).exec(line)?.[1] ?? 0);
  const [failed, skipped] = [reported("failures"), reported("skipped")];
  return { passed: reported("tests") - skipped - failed, failed, skipped };
}

/** A lane takes the next file of the first queue that has one, until none has. */
async function runLane(
  queues: readonly string[][],
  groups: TestGroups,
  reports: string,
): Promise<readonly Ran[]> {
  const ran: Ran[] = [];
  const next = (): string | undefined => queues.find((queue) => queue.length > 0)?.shift();
  for (let file = next(); file !== undefined; file = next())
    ran.push(...(await runBunTest(file, { files: [file], groups }, reports)));
  return ran;
}

async function runTier({ name, files, groups }: Tier, reports: string): Promise<readonly Ran[]> {
  if (name === "e2e" || name === "faults") {
    const busy = longestFirst(files.filter((file) => groups.busy.has(file)));
    const others = longestFirst(files.filter((file) => !groups.busy.has(file)));
    const workers = busy.length === 0 ? e2eWorkersAlone : e2eWorkers;
    // Once no others are left, the processors have time for a second busy one.
    const lanes = [
      [busy, others],
      [others, busy],
      ...Array.from({ length: workers - 1 }, () => [others]),
    ];
    return (
      await Promise.all(lanes.map(async (queues) => runLane(queues, groups, reports)))
    ).flat();
  }
  const parallel = name === "integration" ? [`--parallel=${integrationWorkers}`] : [];
  return runBunTest(name, { files, groups, words: ["--only-failures", ...parallel] }, reports);
}

/** Runs failed files again, one at a time, unless many failed: then lack of time isn't the cause. */
async function runAgain(
  ran: readonly Ran[],
  { files, groups }: Tier,
  reports: string,
): Promise<readonly Ran[]> {
  const failed = ran.filter(({ file, counts }) => counts.failed > 0 && files.includes(file));
  if (failed.length > mostAgain) return ran;
  const again = await runLane([failed.map(({ file }) => file)], groups, reports);
  return ran.map((first) => again.find(({ file }) => file === first.file) ?? first);
}

/** Ends the tests as well, which a signal to this process alone doesn't reach, and prints how far they were. */
function endBy(signal: NodeJS.Signals): void {
  for (const [child, { name, text }] of running) {
    child.kill(signal);
    process.stderr.write(`\n${tidied(text)}${name}: not finished\n`);
  }
  process.kill(process.pid, signal);
}

async function main(): Promise<void> {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => endBy(signal));
  const reports = await mkdtemp(join(tmpdir(), "cluster-e2e-reports-"));
  const [name = "", option] = Bun.argv.slice(2);
  const tier = await readTier(name, option === "--quick");
  const first = tier.files.length === 0 ? [] : await runTier(tier, reports);
  const last = name === "unit" ? first : await runAgain(first, tier, reports);
  await rm(reports, { recursive: true });
  const sum = (kind: keyof Counts): number =>
    last.reduce((total, { counts }) => total + counts[kind], 0);
  const unsteady = first.filter(
    ({ counts }, index) => counts.failed > 0 && last[index]?.counts.failed === 0,
  );
  console.log(
    [
      `${sum("passed")} ${sum("failed")} ${sum("skipped")}`,
      ...unsteady.map(({ file }) => file),
    ].join("\n"),
  );
}

await main();
