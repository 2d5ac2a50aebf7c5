import { describe, expect, test } from "bun:test";
import { askNode } from "../../../../src/platform/readiness/ask-nodes.ts";
import type { Connection } from "../../../../src/ssh/connection/connection.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { fastClock } from "../../../support/scripted-clock.ts";

const node = {
  role: "master",
  index: 0,
  state: "running",
  ssh: { host: "192.0.2.1" },
} as NodeRecord;

test.each([
  ["", "the check failed: its answer is empty"],
  ["\n", "the check failed: its answer is empty"],
  ["welcome\n", "the check failed: its answer is empty"],
  ["layout=\nstatus=\nunit=\n", "not installed yet"],
])("a node that answers %j is waited for: %s", async (stdout, reason) => {
  const run: Connection["run"] = async () => ({ status: 0, stdout, stderr: "" });
  const connections = { connect: async () => ({ run }) as Connection } as never;
  const question = { connections, clock: fastClock, looks: 1, lookPauseMs: 0 };
  const { verdict } = await askNode(node, question, neverAborted);
  expect(verdict).toEqual({ kind: "waiting", reason });
});

describe("a node whose check may take longer than usual", () => {
  const needs = (seconds: number): string =>
    `layout=folder\nstatus=exit 0\nunit=active\ncheck.limit=${seconds}\n`;
  const passed = "layout=folder\nstatus=exit 0\nunit=active\ncheck.status=0\n";

  /** The verdict, and for each question the check's limit and the milliseconds until the node must have answered. */
  async function asked(answers: readonly string[], deadlineMs?: number) {
    const questions: (readonly [seconds: string | undefined, limitMs: number | undefined])[] = [];
    const run: Connection["run"] = async ({ argv, limitMs }, signal) => {
      const stdout = answers[questions.push([argv.at(-1), limitMs]) - 1];
      if (stdout !== undefined) return { status: 0, stdout, stderr: "" };
      await new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
      throw new Error("unreachable");
    };
    const connections = { connect: async () => ({ run }) as Connection } as never;
    const question = { connections, clock: fastClock, looks: 2, lookPauseMs: 0 };
    const limited =
      deadlineMs === undefined
        ? question
        : { ...question, deadlineMs: fastClock.now() + deadlineMs };
    return { answer: await askNode(node, limited, neverAborted), questions };
  }

  test("is asked again, with time for two runs of it", async () => {
    const { answer, questions } = await asked([needs(90), passed]);
    expect(answer.verdict).toEqual({ kind: "ready" });
    expect(questions).toEqual([
      ["20", 60_000],
      ["90", 200_000],
    ]);
  });

  test("is asked once more only, whatever it answers", async () => {
    const { answer, questions } = await asked([needs(90), needs(120)]);
    expect(answer.verdict).toEqual({
      kind: "waiting",
      reason: "the platform's own check does not finish",
    });
    expect(questions).toHaveLength(2);
  });

  test("has no limit above the longest one", async () => {
    const { questions } = await asked([needs(999)]);
    expect(questions).toHaveLength(1);
  });

  test("waits for its check if the deadline comes first", async () => {
    const { answer, questions } = await asked([needs(90)], 50);
    expect(answer).toMatchObject({ isCutShort: true, report: { layout: "folder" } });
    expect(answer.verdict).toEqual({
      kind: "waiting",
      reason: "the platform's own check does not finish",
    });
    expect(questions.map(([seconds]) => seconds)).toEqual(["20", "90"]);
  });
});
