import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { Context } from "../../cli/command.ts";
import { originOf } from "../../cli/error-report.ts";
import type { WaitRequest } from "../../cluster/wait-for-cluster.ts";
import type { Trouble } from "../../cluster/watch/start-watch.ts";
import { ClusterError, messageOf } from "../../errors.ts";
import { nodeReference } from "../../model/cluster-record.ts";
import { writePrivateFile } from "../../system/files/private-file.ts";
import { messageBlock, plainLine, shownText } from "../../system/printable.ts";
import { failureText } from "./step-summary.ts";

/** The result of one test. Texts are not masked yet: outside text is marked. */
interface Test {
  readonly name: string;
  readonly seconds: number;
  readonly outcome: "passed" | "skipped" | { readonly type: string; readonly text: string };
}

interface NodeState {
  /** The time at which the node became ready; undefined while it isn't ready. */
  readonly readyMs: number | undefined;
  readonly reason: string;
}

/** The tests that a command declares, which run one after the other from the first on, and one for each node. */
export interface JunitReport {
  /** Counts the current test as passed and begins the next one. Entering the first test again discards all results. */
  enter(name: string): void;
  readonly onAnswers: NonNullable<WaitRequest["onAnswers"]>;
  /** Adds a failed test for something that went wrong on a node. */
  readonly onTrouble: (trouble: Trouble) => void;
  /**
   * Does the work that the tests check, then writes the file if the user wants one. If the work
   * fails, so does the current test, and the tests after it count as skipped. If the file can't be
   * written, it only warns.
   */
  during<Result>(work: () => Promise<Result>): Promise<Result>;
}

export const readinessTest = "The platform is ready";

interface ReportRequest {
  readonly file: string | undefined;
  readonly clusterId: string;
  /** The value of `--chaos` that repeats its plan of faults. */
  readonly chaos?: string | undefined;
  /** The names of all tests in their order, without those of the nodes. */
  readonly tests: readonly string[];
}

export function junitReport(
  { file, clusterId, chaos, tests }: ReportRequest,
  context: Context,
): JunitReport {
  const { clock, progress } = context;
  const startMs = clock.now();
  const done: Test[] = [];
  const nodes = new Map<string, NodeState>();
  const current = { name: tests[0] ?? "", startMs };
  const end = (outcome: Test["outcome"]): void => {
    const period = { startMs: current.startMs, endMs: clock.now() };
    const own = { name: current.name, seconds: secondsOf(period), outcome };
    done.push(...nodeTests(nodes, period), own);
  };
  const write = async (): Promise<void> => {
    if (file === undefined) return;
    const skipped = tests.slice(tests.indexOf(current.name) + 1);
    const all = [...done, ...skipped.map(skippedTest)];
    const suite = { name: context.programName, clusterId, chaos, startMs, endMs: clock.now() };
    const text = renderJunit(suite, all, (given) => progress.mask(given));
    try {
      await mkdir(dirname(file), { recursive: true });
      await writePrivateFile(file, text);
    } catch (error) {
      progress.warn(`cannot write the JUnit report: ${messageOf(error)}`);
    }
  };
  return {
    enter: (name) => {
      if (name !== tests[0]) end("passed");
      else done.length = 0;
      nodes.clear();
      Object.assign(current, { name, startMs: clock.now() });
    },
    onAnswers: (answers) => {
      for (const { node, verdict } of answers) {
        const name = nodeReference(node);
        const isReady = verdict.kind === "ready";
        const readyMs = isReady ? (nodes.get(name)?.readyMs ?? clock.now()) : undefined;
        nodes.set(name, { readyMs, reason: isReady ? "" : verdict.reason });
      }
    },
    onTrouble: (trouble) => void done.push(troubleTest(trouble)),
    during: async (work) => {
      try {
        const result = await work();
        end("passed");
        return result;
      } catch (failure) {
        end({ type: typeOf(failure), text: failureText(failure, context) });
        throw failure;
      } finally {
        await write();
      }
    },
  };
}

const skippedTest = (name: string): Test => ({ name, seconds: 0, outcome: "skipped" });

const troubleTest = ({ node, kind, what, text }: Trouble): Test => ({
  name: `${node}: ${what}`,
  seconds: 0,
  outcome: { type: kind, text },
});

interface Period {
  readonly startMs: number;
  readonly endMs: number;
}

const secondsOf = ({ startMs, endMs }: Period): number => (endMs - startMs) / 1000;

const nodeTests = (
  nodes: ReadonlyMap<string, NodeState>,
  { startMs, endMs }: Period,
): readonly Test[] =>
  [...nodes].map(([node, { readyMs, reason }]) => ({
    name: `${node} is ready`,
    seconds: secondsOf({ startMs, endMs: readyMs ?? endMs }),
    outcome: readyMs === undefined ? { type: "not-ready", text: reason } : "passed",
  }));

function typeOf(failure: unknown): string {
  const origin = originOf(failure);
  return origin instanceof ClusterError
    ? origin.id
    : origin instanceof Error
      ? origin.name
      : "Error";
}

/** Returns the XML. Names and texts may contain any characters. */
function renderJunit(
  suite: Period & Pick<ReportRequest, "clusterId" | "chaos"> & { readonly name: string },
  tests: readonly Test[],
  mask: (text: string) => string,
): string {
  const shown = (text: string): string => shownText(text, mask);
  const seconds = secondsOf(suite).toFixed(3);
  const failures = tests.filter(({ outcome }) => typeof outcome === "object").length;
  const skipped = tests.filter(({ outcome }) => outcome === "skipped").length;
  const counts = `tests="${tests.length}" failures="${failures}" errors="0" time="${seconds}"`;
  const start = new Date(suite.startMs).toISOString().slice(0, 19);
  const name = escaped(suite.name);
  const { clusterId: cluster, chaos } = suite;
  const properties = Object.entries({ cluster, chaos }).flatMap(([key, value]) =>
    value === undefined ? [] : [`<property name="${key}" value="${escaped(value)}"/>`],
  );
  const cases = tests.map(({ name: test, seconds: took, outcome }) => {
    const head = `    <testcase classname="${name}" name="${escaped(test)}" time="${took.toFixed(3)}"`;
    if (outcome === "passed") return `${head}/>`;
    if (outcome === "skipped") return `${head}><skipped/></testcase>`;
    const text = shown(messageBlock(outcome.text));
    const traits = `type="${escaped(outcome.type)}" message="${escaped(plainLine(text.split("\n")[0]))}"`;
    return `${head}>\n      <failure ${traits}>${escaped(text)}</failure>\n    </testcase>`;
  });
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="${name}" timestamp="${start}" skipped="${skipped}" ${counts}>`,
    `    <properties>${properties.join("")}</properties>`,
    ...cases,
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

/** Escapes printable text for XML 1.0, which has no U+FFFE and U+FFFF. */
const escaped = (text: string): string =>
  Bun.escapeHTML(text.replaceAll(/[\uFFFE\uFFFF]/g, "\uFFFD"));
