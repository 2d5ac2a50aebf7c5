import { expect, test } from "bun:test";
import { waitsText } from "../../../../src/platform/readiness/readiness.ts";

const waits = (...pairs: readonly (readonly [string, string])[]): Parameters<typeof waitsText>[0] =>
  pairs.map(([subject, reason]) => ({ subject, reason }));

test("nodes that wait for the same are named together", () => {
  const text = waitsText(waits(["agent_0", "x"], ["agent_1", "x"], ["master_0", "y"]), 4);
  expect(text).toBe("agent_0, agent_1: x; master_0: y");
});

test("all nodes are one", () => {
  expect(waitsText(waits(["master_0", "x"], ["agent_0", "x"]), 2)).toBe("all 2 nodes: x");
  expect(waitsText(waits(["master_0", "x"]), 1)).toBe("master_0: x");
});

test("a line stays a line, however many nodes there are", () => {
  const many = Array.from({ length: 50 }, (_, index) => [`agent_${index}`, "x"] as const);
  expect(waitsText(waits(...many), 60)).toBe("agent_0, agent_1, agent_2 and 47 more: x");
  const reasons = Array.from({ length: 7 }, (_, index) => [`agent_${index}`, `r${index}`] as const);
  expect(waitsText(waits(...reasons), 60)).toBe(
    "agent_0: r0; agent_1: r1; agent_2: r2; agent_3: r3; and 3 other reasons",
  );
});
