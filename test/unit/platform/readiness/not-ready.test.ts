import { expect, test } from "bun:test";
import type { NodeAnswer } from "../../../../src/platform/readiness/ask-node.ts";
import { assertNotFailed, deadlinePassed } from "../../../../src/platform/readiness/not-ready.ts";

const answer = (index: number, verdict: object) =>
  ({ node: { role: "agent", index }, verdict }) as unknown as NodeAnswer;

test("what each node still lacks is listed, up to 40 lines", () => {
  const waits = Array.from({ length: 42 }, (_, index) => ({
    subject: `agent_${index}`,
    reason: "installing",
  }));
  const lines = deadlinePassed(waits, [], 61_000).message.split("\n");
  expect(lines[0]).toContain("61 s");
  expect(lines.slice(2, 42)).toEqual(
    waits.slice(0, 40).map(({ subject }) => `  ${subject}: installing`),
  );
  expect(lines.at(-1)).toBe("  and 2 more");
  expect(deadlinePassed(waits.slice(0, 40), [], 0).message).toEndWith("  agent_39: installing");
  expect(deadlinePassed(waits.slice(0, 41), [], 0).message).toEndWith("  and 1 more");
});

test("a cluster for which nothing was lacking says something of that, too", () => {
  expect(deadlinePassed([], [], 1000).message.split("\n")).toHaveLength(2);
});

test("the first node that failed is shown with its log, the others are named", () => {
  const failed = { kind: "failed", reason: "it exited with status 3", log: ["disk is full"] };
  const answers = [
    answer(0, { kind: "ready" }),
    answer(1, failed),
    answer(2, { ...failed, log: [] }),
  ];
  expect(() => assertNotFailed(answers)).toThrow(
    /agent_1 .*agent_2.*status 3\.\n.*\n    disk is full$/,
  );
  expect(() => assertNotFailed([answers[2]!])).toThrow(/agent_2: .*status 3\.$/);
  expect(() => assertNotFailed([answers[0]!])).not.toThrow();
});
