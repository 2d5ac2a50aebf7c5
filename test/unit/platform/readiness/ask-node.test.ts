import { describe, expect, test } from "bun:test";
import { type NodeAnswer, askNode } from "../../../../src/platform/readiness/ask-node.ts";
import { parseNodeReport } from "../../../../src/platform/readiness/node-question.ts";
import type { Connection, RemoteCommand } from "../../../../src/ssh/connection/connection.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

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
  const question = { connections, looks: 1 };
  const { verdict } = await askNode(node, question, neverAborted);
  expect(verdict).toEqual({ kind: "waiting", reason });
});

describe("a node whose check may take longer than usual", () => {
  const needs = (seconds: number): string =>
    `layout=folder\nstatus=exit 0\nunit=active\ncheck.limit=${seconds}\n`;
  const passed = "layout=folder\nstatus=exit 0\nunit=active\ncheck.status=0\n";

  /** The verdict, and for each question the check's limit and the milliseconds until the node must have answered. */
  async function asked(answers: readonly string[], known?: string) {
    const questions: (readonly [seconds: string | undefined, limitMs: number | undefined])[] = [];
    const run: Connection["run"] = async ({ argv, limitMs }, signal) => {
      const stdout = answers[questions.push([argv.at(-1), limitMs]) - 1];
      if (stdout !== undefined) return { status: 0, stdout, stderr: "" };
      await new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
      throw new Error("unreachable");
    };
    const connections = { connect: async () => ({ run }) as Connection } as never;
    const first: NodeAnswer[] = [];
    const onFirst = (answer: NodeAnswer): void => void first.push(answer);
    const question = { connections, looks: 2, known, onFirst };
    return { answer: await askNode(node, question, neverAborted), questions, first };
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
      reason: "its check runs, for 120 s at most",
    });
    expect(questions).toHaveLength(2);
  });

  test("has no limit above the longest one", async () => {
    const { questions } = await asked([needs(999)]);
    expect(questions).toHaveLength(1);
  });

  test("says first that it needs more time", async () => {
    const { first } = await asked([needs(90), passed]);
    const reason = "its check runs, for 90 s at most";
    expect(first).toMatchObject([{ verdict: { kind: "waiting", reason } }]);
    expect((await asked([passed])).first).toEqual([]);
  });

  test("may take a minute longer until it has another answer than the known one", async () => {
    const { questions } = await asked([needs(90), passed], "1-75");
    expect(questions).toEqual([
      ["20", 120_000],
      ["90", 260_000],
    ]);
  });
});

test("a node is told which answer is known, and how long it may wait; its whole answer is never shown", async () => {
  const asked: RemoteCommand[] = [];
  const run: Connection["run"] = async (command) => {
    asked.push(command);
    return { status: 0, stdout: "seen=7-75\nlayout=\n", stderr: "" };
  };
  const connections = { connect: async () => ({ run }) as Connection } as never;
  const first = await askNode(node, { connections, looks: 2 }, neverAborted);
  await askNode(node, { connections, looks: 2, known: first.report?.seen }, neverAborted);
  expect(asked.map(({ argv }) => argv.slice(-4))).toEqual([
    ["2", "-", "0", "20"],
    ["2", "7-75", "60", "20"],
  ]);
  expect(asked.map(({ isOutputHidden }) => isOutputHidden)).toEqual([true, true]);
});

test.each([
  ["", false],
  ["layout=folder\nstatus=running\nunit=active\n", false],
  ["layout=folder\nstatus=exit 0\nunit=inactive\ncheck.status=0\ncheck=fine\n", false],
  ["layout=folder\nstatus=exit 0\nunit=inactive\ncheck.status=1\ncheck=no leader\n", true],
  ["layout=folder\nstatus=exit 1\nunit=failed\nlog=smoke\n", true],
])("whether users see words of the node in its answer %j: %p", async (stdout, isQuoted) => {
  const seen: unknown[] = [];
  const run: Connection["run"] = async (command) => {
    const result = { status: 0, stdout, stderr: "" };
    seen.push(
      command.isQuoted?.(result),
      command.isQuoted?.({ ...result, status: 1, stderr: "no" }),
    );
    return result;
  };
  const connections = { connect: async () => ({ run }) as Connection } as never;
  await askNode(node, { connections, looks: 1 }, neverAborted);
  expect(seen).toEqual([isQuoted, true]);
});

test.each(["1-75; reboot", "$(reboot)", "1", "-", "12345678901-1", "1-2-3"])(
  "a node that names %j as the sum of its answer names none",
  async (seen) => {
    expect(parseNodeReport(`seen=${seen}\nlayout=\n`).seen).toBeUndefined();
  },
);
