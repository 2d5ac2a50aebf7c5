import { expect, test } from "bun:test";
import { waitsText } from "../../../../src/platform/readiness/report-waits.ts";

const waits = (...pairs: readonly (readonly [string, string])[]): Parameters<typeof waitsText>[0] =>
  pairs.map(([subject, reason]) => ({ subject, reason }));

test("each node has a line with its whole reason", () => {
  const text = waitsText(waits(["agent_0", "x"], ["agent_1", "x"], ["master_0", "y"]), 4);
  expect(text).toBe("waiting for 3 nodes:\n  agent_0: x\n  agent_1: x\n  master_0: y");
  expect(waitsText(waits(["master_0", "x"]), 1)).toBe("master_0: x");
  const twice = waits(["master_0", "x"], ["master_0", "y"]);
  expect(waitsText(twice, 1)).toBe("waiting for 1 node:\n  master_0: x\n  master_0: y");
  const eight = Array.from({ length: 8 }, (_, index) => [`agent_${index}`, "x"] as const);
  expect(waitsText(waits(...eight), 8)).toEndWith("\n  agent_6: x\n  agent_7: x");
});

test("many nodes have a line for each reason", () => {
  const many = Array.from({ length: 50 }, (_, index) => [`agent_${index}`, "x"] as const);
  expect(waitsText(waits(...many), 50)).toBe("waiting for 50 nodes:\n  all 50 nodes: x");
  expect(waitsText(waits(...many), 60)).toBe(
    "waiting for 50 nodes:\n  agent_0, agent_1, agent_2 and 47 more: x",
  );
  const some = [...many.slice(0, 6), ...[6, 7, 8].map((index) => [`agent_${index}`, "y"] as const)];
  expect(waitsText(waits(...some), 9)).toEndWith("\n  agent_6, agent_7, agent_8: y");
  const reasons = Array.from(
    { length: 10 },
    (_, index) => [`agent_${index}`, `r${index}`] as const,
  );
  expect(waitsText(waits(...reasons), 60)).toEndWith("\n  agent_7: r7\n  and 2 other reasons");
});
