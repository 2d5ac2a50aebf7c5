/**
 * Runs the tests of a tier: those of the e2e tier file by file, several files at a time. What a file's tests print is shown when
 * the file is done, in one piece. Prints nothing on stdout but one line, "PASSED FAILED SKIPPED".
 * Usage: bun run scripts/test-tier.ts unit|integration|e2e|faults
 */
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";

/** Files of the e2e tier that keep all processors busy: a virtual machine is translated where KVM doesn't work. They run one at a time. */
const busyFiles = ["**/vm-*.test.ts", "**/vm/*.test.ts", "**/container-cgroup2.test.ts"].map(
  (pattern) => new Bun.Glob(pattern),
);
const processors = availableParallelism();
/** Most tests wait for machines most of the time, so that two processors can do more than two files at once. */
const integrationWorkers = Math.min(2 * processors, 8);
const e2eWorkers = Math.min(Math.max(processors, 2), 4);

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const running = new Map<ReturnType<typeof Bun.spawn>, { readonly name: string; text: string }>();

async function filesOf(tier: string): Promise<readonly string[]> {
  const found = await Array.fromAsync(new Bun.Glob(`test/${tier}/**/*.test.ts`).scan());
  return found.toSorted((one, other) => (one < other ? -1 : 1));
}

/** One `bun test`, whose whole output follows when it is over. */
async function runBunTest(name: string, words: readonly string[], reports: string): Promise<Counts> {
  const report = join(reports, `${name.replaceAll("/", "-")}.xml`);
  // The limit is for tests of real machines that name none of their own: five seconds, as Bun has it, pass quickly on a busy computer.
  const argv = [
    process.execPath,
    "test",
    ...words,
    "--timeout=60000",
    "--reporter=junit",
    `--reporter-outfile=${report}`,
  ];
  const child = Bun.spawn(argv, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const output = { name, text: "" };
  running.set(child, output);
  const started = performance.now();
  await Promise.all([child.stdout, child.stderr].map(async (stream) => follow(stream, output)));
  const status = await child.exited;
  running.delete(child);
  const seconds = ((performance.now() - started) / 1_000).toFixed(1);
  process.stderr.write(`\n${tidied(output.text)}${name}: ended with ${status} after ${seconds} s\n`);
  return countsOf(report, status);
}

async function follow(stream: ReadableStream<Uint8Array>, output: { text: string }): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) output.text += decoder.decode(chunk, { stream: true });
}

/** Without Bun's version, and without more than one empty line in a row. */
function tidied(text: string): string {
  return `${text
    .replace(/^bun test v.*\n/gm, "")
    .replace(/\n{3,}/g, "\n\n")
    .trim()}\n`;
}

/** What the first line of a JUnit report says. A file that can't be loaded, or a crash, stands in no report. */
async function countsOf(report: string, status: number): Promise<Counts> {
  const text = await Bun.file(report)
    .text()
    .catch(() => "");
  const line = /^<testsuites .*$/m.exec(text)?.[0] ?? "";
  const reported = (name: string): number => Number(new RegExp(` ${name}="([0-9]*)"`).exec(line)?.[1] ?? 0);
  const [failures, skipped] = [reported("failures"), reported("skipped")];
  const failed = status !== 0 && failures === 0 ? 1 : failures;
  return { passed: reported("tests") - skipped - failures, failed, skipped };
}

/** Each lane takes the next file that is left, until none is. */
async function runLane(files: string[], reports: string): Promise<readonly Counts[]> {
  const counts: Counts[] = [];
  for (let file = files.shift(); file !== undefined; file = files.shift())
    counts.push(await runBunTest(file, [`./${file}`], reports));
  return counts;
}

async function runTier(tier: string, reports: string): Promise<readonly Counts[]> {
  const files = await filesOf(tier);
  if (files.length === 0) return [];
  if (tier === "unit") return [await runBunTest(tier, [`./test/${tier}`, "--only-failures"], reports)];
  if (tier === "integration") {
    const words = [`./test/${tier}`, "--only-failures", `--parallel=${integrationWorkers}`];
    return [await runBunTest(tier, words, reports)];
  }
  const isBusy = (file: string): boolean => busyFiles.some((pattern) => pattern.match(file));
  const others = files.filter((file) => !isBusy(file));
  const lanes = [files.filter(isBusy), ...Array.from({ length: e2eWorkers }, () => others)];
  return (await Promise.all(lanes.map(async (lane) => runLane(lane, reports)))).flat();
}

/** Ends the tests too, which a signal to this process alone doesn't reach, and shows how far they were. */
function endBy(signal: NodeJS.Signals): void {
  for (const [child, { name, text }] of running) {
    child.kill(signal);
    process.stderr.write(`\n${tidied(text)}${name}: not finished\n`);
  }
  process.kill(process.pid, signal);
}

async function main(): Promise<void> {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => endBy(signal));
  const reports = await mkdtemp(join(tmpdir(), "cluster-e2e-reports-"));
  const counts = await runTier(Bun.argv[2] ?? "", reports);
  await rm(reports, { recursive: true });
  const sum = (name: keyof Counts): number => counts.reduce((total, each) => total + each[name], 0);
  console.log(`${sum("passed")} ${sum("failed")} ${sum("skipped")}`);
}

await main();
