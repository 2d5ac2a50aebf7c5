import { expect, test } from "bun:test";
import {
  durationText,
  endText,
  momentText,
  nodesText,
  numbered,
} from "../../../src/system/amounts.ts";

test.each([
  [0, "0 s"],
  [59, "59 s"],
  [60, "1 min"],
  [3599, "59 min"],
  [3600, "1 h"],
  [7140, "1 h 59 min"],
])("%d seconds are shown as %s", (seconds, shown) => {
  expect(durationText(seconds)).toBe(shown);
});

const nowMs = Date.parse("2026-01-01T07:58:00Z");
test.each([
  ["2026-01-01T09:57:30.5Z", "09:57 UTC (in 1 h 59 min)"],
  ["2026-01-01T07:55:00Z", "07:55 UTC (3 min ago)"],
  ["2026-01-01T07:58:00Z", "07:58 UTC (in 0 s)"],
  ["2026-01-02T07:58:00Z", "2026-01-02 07:58 UTC (in 24 h)"],
  ["2025-12-31T23:58:00Z", "2025-12-31 23:58 UTC (8 h ago)"],
])("%s is shown as %s", (end, shown) => {
  expect(endText(end, nowMs)).toBe(shown);
  expect(endText(new Date(end), nowMs)).toStartWith(momentText(end, nowMs));
});

test("only one thing is singular, in every count", () => {
  expect([0, 1, 2].map((count) => numbered(count, "agent"))).toEqual([
    "0 agents",
    "1 agent",
    "2 agents",
  ]);
  expect(nodesText({ master: 1, agent: 0, public_agent: 1 })).toBe(
    "1 master, 0 agents, 1 public agent",
  );
});
