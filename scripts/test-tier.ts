/**
 * Runs the tests of a tier, several files at a time. Prints the output of each file in one piece when the file has ended, and at the end what each
 * file took and what the tier made this computer do. An integration or e2e file that fails runs once more when all others have ended: one that
 * passes then depends on something else than the program, and is named. Prints on stdout "PASSED FAILED SKIPPED", then lines that begin with
 * "unsteady FILE", "failed FILE" or "skipped NUMBER REASON". Keeps the output of files that failed in dist/failed-tests.
 * Usage: bun run scripts/test-tier.ts unit|integration|e2e|faults [--quick] [--shuffled] [--limit SECONDS] [FILE...]
 *   --quick     Leave out the files that take minutes, and print their names
 *   --shuffled  Run the tests of a file in any order, and print the seed of a file that fails
 *   --limit     The time limit of tests that set none of their own
 *   FILE        Only these files
 */
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { groupTests, longestFirst, type TestGroups } from "./test-groups.ts";
import { type FailedRun, failedIn, keepFailure } from "./test-tier/failures.ts";
import { type Counts, type FileReport, readReport } from "./test-tier/junit.ts";
import { startMeter } from "./test-tier/meter.ts";

const processors = availableParallelism();
/** Most tests wait for machines most of the time, so that two processors can do more than two files at once. */
const integrationWorkers = Math.min(2 * processors, 8);
const e2eWorkers = Math.min(Math.max(processors, 2), 4);
/** Where no file keeps the processors busy, one more fills the time in which the others wait for machines. */
const e2eWorkersAlone = e2eWorkers + 1;
const mostAgain = 5;

interface Ran extends FileReport {
  readonly file: string;
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false },
    shuffled: { type: "boolean", default: false },
    limit: { type: "string" },
  },
});
/** Seconds, in which a test passes on any computer. Bun's own five are too few on a busy one. */
const limits: Readonly<Record<string, number>> = { integration: 300, e2e: 900 };
/** Where each boot takes many minutes, because a processor is translated and something else keeps this computer busy. */
const busyLimit = 7_200;

const running = new Map<ReturnType<typeof Bun.spawn>, FailedRun & { text: string }>();

interface Tier {
  readonly name: string;
  readonly files: readonly string[];
  readonly groups: TestGroups;
}

async function readTier(name: string, only: readonly string[]): Promise<Tier> {
  if (name === "") throw new Error("name a tier");
  const present = await Array.fromAsync(new Bun.Glob(`test/${name}/**/*.test.ts`).scan());
  const found = present.filter((file) => only.length === 0 || only.includes(file));
  const all = found.toSorted((one, other) => (one < other ? -1 : 1));
  const groups = await groupTests(all);
  if (!options.quick) return { name, files: all, groups };
  for (const [file, reason] of groups.slow)
    process.stderr.write(`left out: ${file}, which ${reason}\n`);
  return { name, files: all.filter((file) => !groups.slow.has(file)), groups };
}

interface TestRun extends Tier {
  /** Further words of `bun test`. */
  readonly words?: readonly string[];
}

/** Runs `bun test` once, and prints its whole output when it has ended. Resolves with the counts of each file. */
async function runBunTest(
  name: string,
  { name: tier, files, words = [], groups }: TestRun,
  reports: string,
): Promise<readonly Ran[]> {
  const report = join(reports, `${name.replaceAll("/", "-")}.xml`);
  const seed = Math.floor(Math.random() * 2 ** 31);
  const isBusy = files.every((file) => groups.busy.has(file));
  const limit = isBusy ? busyLimit : (limits[tier] ?? 120);
  const settings = [
    `--timeout=${Number(options.limit ?? limit) * 1_000}`,
    ...(options.shuffled ? ["--randomize", `--seed=${seed}`] : []),
  ];
  const argv = [
    process.execPath,
    "test",
    ...files.map((file) => `./${file}`),
    ...words,
    ...settings,
    "--reporter=junit",
    `--reporter-outfile=${report}`,
  ];
  const child = Bun.spawn(argv, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const output = { name, tier, settings, text: "" };
  running.set(child, output);
  if (isBusy) preferProcess(child.pid);
  const started = performance.now();
  await Promise.all([child.stdout, child.stderr].map(async (stream) => follow(stream, output)));
  const status = await child.exited;
  // `endBy` reports the files that an interrupt ends, and then ends this process.
  if (!running.delete(child)) return await new Promise(() => {});
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  process.stderr.write(
    `\n${tidied(output.text)}${name}: ended with ${status} after ${seconds} s\n`,
  );
  const text = await Bun.file(report)
    .text()
    .catch(() => "");
  const ran = files.map((file) => ({ file, ...readReport(file, text, status) }));
  const failed = ran.filter(({ counts }) => counts.failed > 0).map(({ file }) => file);
  if (status !== 0) await keepFailure(output, failed.length === 0 ? files : failed);
  if (files.length === 1) return ran.map((each) => ({ ...each, seconds: Number(seconds) }));
  if (status === 0 || ran.some(({ counts }) => counts.failed > 0)) return ran;
  const lost = { counts: { passed: 0, failed: 1, skipped: 0 }, seconds: 0, skips: [] };
  return [...ran, { file: name, ...lost }];
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

/** A lane takes the next file of the first queue that has one, until none has. */
async function runLane(
  queues: readonly string[][],
  tier: Tier,
  reports: string,
): Promise<readonly Ran[]> {
  const ran: Ran[] = [];
  const next = (): string | undefined => queues.find((queue) => queue.length > 0)?.shift();
  for (let file = next(); file !== undefined; file = next())
    ran.push(...(await runBunTest(file, { ...tier, files: [file] }, reports)));
  return ran;
}

async function runTier(tier: Tier, reports: string): Promise<readonly Ran[]> {
  const { name, files, groups } = tier;
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
    return (await Promise.all(lanes.map(async (queues) => runLane(queues, tier, reports)))).flat();
  }
  const parallel = name === "integration" ? [`--parallel=${integrationWorkers}`] : [];
  return runBunTest(name, { ...tier, words: ["--only-failures", ...parallel] }, reports);
}

/** Runs failed files again, one at a time, unless many failed: then lack of time isn't the cause. */
async function runAgain(ran: readonly Ran[], tier: Tier, reports: string): Promise<readonly Ran[]> {
  const failed = ran.filter(({ file, counts }) => counts.failed > 0 && tier.files.includes(file));
  if (failed.length > mostAgain) return ran;
  const again = await runLane([failed.map(({ file }) => file)], tier, reports);
  return ran.map((first) => again.find(({ file }) => file === first.file) ?? first);
}

/** Ends the tests as well, which a signal to this process alone doesn't reach, prints how far they were, and keeps what has failed. */
async function endBy(signal: NodeJS.Signals): Promise<void> {
  const all = [...running];
  running.clear();
  for (const [child] of all) child.kill(signal);
  for (const [, run] of all) {
    const failed = failedIn(run.text);
    if (failed.length > 0) await keepFailure(run, failed);
    process.stderr.write(`\n${tidied(run.text)}${run.name}: not finished\n`);
  }
  process.kill(process.pid, signal);
}

/** What the files took, longest first; the rest of many is left out. */
function timesOf(ran: readonly Ran[]): string {
  const sorted = ran.toSorted((one, other) => other.seconds - one.seconds).slice(0, 70);
  return sorted
    .map(({ file, seconds }) => `${seconds.toFixed(0).padStart(6)} s  ${file}\n`)
    .join("");
}

function skipLines(ran: readonly Ran[]): readonly string[] {
  const reasons = Map.groupBy(
    ran.flatMap(({ skips }) => skips),
    (reason) => reason,
  );
  return [...reasons].map(([reason, all]) => `skipped ${all.length} ${reason}`);
}

async function main(): Promise<void> {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => void endBy(signal));
  const reports = await mkdtemp(join(tmpdir(), "cluster-e2e-reports-"));
  const [name = "", ...only] = positionals;
  const tier = await readTier(name, only);
  const stopMeter = startMeter();
  const first = tier.files.length === 0 ? [] : await runTier(tier, reports);
  const last = name === "unit" ? first : await runAgain(first, tier, reports);
  process.stderr.write(`\n${timesOf(first)}${name}: ${await stopMeter()}\n`);
  await rm(reports, { recursive: true });
  const sum = (kind: keyof Counts): number =>
    last.reduce((total, { counts }) => total + counts[kind], 0);
  const failing = (ran: Ran | undefined): boolean => ran !== undefined && ran.counts.failed > 0;
  const unsteady = first.filter((ran, index) => failing(ran) && !failing(last[index]));
  console.log(
    [
      `${sum("passed")} ${sum("failed")} ${sum("skipped")}`,
      ...unsteady.map(({ file }) => `unsteady ${file}`),
      ...last.filter(failing).map(({ file }) => `failed ${file}`),
      ...skipLines(last),
    ].join("\n"),
  );
}

await main();
