import { expect, test } from "bun:test";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Context } from "../../../../src/cli/command.ts";
import { Interrupted } from "../../../../src/cli/command.ts";
import { junitReport } from "../../../../src/commands/summary/junit-report.ts";
import { ClusterError } from "../../../../src/errors.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import { outside } from "../../../../src/outside-text.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { hostileTexts } from "../../../support/hostile-text.ts";
import { readJunit } from "../../../support/junit.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const secret = "tr0ub4dor";
const [nodeA, nodeB] = [
  { role: "master", index: 0 },
  { role: "agent", index: 0 },
] as unknown as readonly [NodeRecord, NodeRecord];

/** The report of a command with three tests, and where it goes. */
async function openReport(folder: string, chaos?: string) {
  const clock = { nowMs: Date.parse("2026-01-01T00:00:00Z") };
  const warnings: string[] = [];
  const context = {
    programName: "cluster-x",
    nameFlags: (text: string) => text.replaceAll("`timeout`", "--timeout"),
    clock: { now: () => clock.nowMs, sleep: async () => {} },
    progress: {
      ...silentProgress,
      mask: (text: string) => text.replaceAll(secret, "***"),
      warn: (text: string) => void warnings.push(text),
    },
  } as unknown as Context;
  const file = join(folder, "junit.xml");
  const report = junitReport({ file, clusterId: "demo", chaos, tests: ["a", "b", "c"] }, context);
  const pass = (ms: number): number => (clock.nowMs += ms);
  return { report, file, warnings, pass };
}

const during = async (report: Awaited<ReturnType<typeof openReport>>["report"], failure?: Error) =>
  report
    .during(async () => {
      if (failure !== undefined) throw failure;
    })
    .catch((error: unknown) => expect(error).toBe(failure));

/** Each element as one line, and its text as another. */
const elementsOf = async (file: string): Promise<readonly string[]> =>
  readJunit(await readFile(file)).flatMap(({ name, attributes, text }) => [
    [name, ...Object.entries(attributes).map(([key, value]) => `${key}="${value}"`)].join(" "),
    ...(text === "" ? [] : [text]),
  ]);

test("what repeats a plan of faults is a property", async () => {
  await using folder = await scratchFolder();
  const { report, file } = await openReport(folder.path, "seed=7,every=30s");
  await during(report);
  expect(await elementsOf(file)).toContain('property name="chaos" value="seed=7,every=30s"');
});

test("a success lists every test and every node, with the seconds that each took", async () => {
  await using folder = await scratchFolder();
  const { report, file, pass } = await openReport(folder.path);
  pass(1_000);
  report.enter("b");
  report.onAnswers([
    { node: nodeA, verdict: { kind: "ready" } },
    { node: nodeB, verdict: { kind: "waiting", reason: "the installer is running" } },
  ]);
  pass(2_000);
  report.onAnswers([nodeA, nodeB].map((node) => ({ node, verdict: { kind: "ready" } })));
  pass(500);
  report.enter("c");
  pass(250);
  await during(report);
  const counts = 'tests="5" failures="0" errors="0" time="3.750"';
  expect(await elementsOf(file)).toEqual([
    `testsuites ${counts}`,
    `testsuite name="cluster-x" timestamp="2026-01-01T00:00:00" skipped="0" ${counts}`,
    "properties",
    'property name="cluster" value="demo"',
    'testcase classname="cluster-x" name="a" time="1.000"',
    'testcase classname="cluster-x" name="master_0 is ready" time="0.000"',
    'testcase classname="cluster-x" name="agent_0 is ready" time="2.000"',
    'testcase classname="cluster-x" name="b" time="2.500"',
    'testcase classname="cluster-x" name="c" time="0.250"',
  ]);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder.path)).toEqual(["junit.xml"]);
});

test("a failure belongs to the test under way and the nodes that aren't ready; later tests are skipped", async () => {
  await using folder = await scratchFolder();
  const { report, file } = await openReport(folder.path);
  report.enter("b");
  report.onAnswers([
    { node: nodeA, verdict: { kind: "ready" } },
    {
      node: nodeB,
      verdict: { kind: "failed", reason: `it said ${outside(`<${secret}>`)}`, log: [] },
    },
  ]);
  await during(
    report,
    new ClusterError("deadline-passed", `Too slow: ${outside(secret)}`, {
      hint: "Pass `timeout`.",
    }),
  );
  const elements = await elementsOf(file);
  expect(elements[1]).toContain('skipped="1" tests="5" failures="2" errors="0"');
  expect(elements.slice(5)).toEqual([
    'testcase classname="cluster-x" name="master_0 is ready" time="0.000"',
    'testcase classname="cluster-x" name="agent_0 is ready" time="0.000"',
    'failure type="not-ready" message="it said <***>"',
    "it said <***>",
    'testcase classname="cluster-x" name="b" time="0.000"',
    'failure type="deadline-passed" message="Too slow: ***"',
    "Too slow: ***\n  Pass --timeout.\n  [deadline-passed]",
    'testcase classname="cluster-x" name="c" time="0.000"',
    "skipped",
  ]);
});

test("an interruption is a failure too", async () => {
  await using folder = await scratchFolder();
  const { report, file } = await openReport(folder.path);
  await during(report, new Interrupted("SIGTERM"));
  expect(await readFile(file, "utf8")).toContain(
    '<failure type="Interrupted" message="Interrupted by SIGTERM">',
  );
});

test("whatever a node says, the file is well-formed, and nothing in it controls a terminal", async () => {
  await using folder = await scratchFolder();
  for (const text of [
    ...hostileTexts(29, 200),
    "]]>",
    "\uFFFE\uFFFF",
    "&".repeat(3_000),
    '"'.repeat(999),
    "\uD800",
  ]) {
    const { report, file } = await openReport(folder.path);
    report.onAnswers([
      { node: nodeA, verdict: { kind: "failed", reason: outside(text), log: [] } },
    ]);
    await during(report, new ClusterError("install-failed", outside(text)));
    expect((await elementsOf(file)).length).toBeGreaterThan(6);
    expect(await readFile(file, "utf8")).not.toMatch(
      /[^\t\n\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]|[\u0080-\u009F]/u,
    );
  }
});

test("that the file can no longer be written is only a warning", async () => {
  await using folder = await scratchFolder();
  const { report, warnings } = await openReport(join(folder.path, "file"));
  await writeFile(join(folder.path, "file"), "");
  await during(report);
  expect(warnings.join()).toContain("cannot write the JUnit report: E");
});
