import { expect, test } from "bun:test";
import { BadValue } from "../../../../src/cli/options/option.ts";
import { Problems } from "../../../../src/cli/options/problems.ts";
import {
  checkFault,
  parseLoss,
  parseOffset,
  parseRate,
  parseSize,
} from "../../../../src/commands/fault/fault-values.ts";

test.each([
  [parseLoss, "5%", 5],
  [parseLoss, "0.25", 0.25],
  [parseRate, "512kbit", 512],
  [parseRate, "1mbit", 1000],
  [parseRate, "2gbit", 2_000_000],
  [parseOffset, "+1h", 3_600_000],
  [parseOffset, "1h", 3_600_000],
  [parseOffset, "-30s", -30_000],
  [parseSize, "0", 0],
  [parseSize, "64K", 65_536],
  [parseSize, "1G", 2 ** 30],
])("%p reads %s", (parse, given, expected) => {
  expect(parse(given)).toBe(expected);
});

test.each([
  [parseLoss, ["", "%", "5 %", "-1%", "1e2", "0.123%"]],
  [parseRate, ["", "1", "1 mbit", "1.5mbit", "1Mbit", "-1kbit"]],
  [parseOffset, ["", "+", "--1h", "1", "+-1s"]],
  [parseSize, ["", "K", "1T", "1.5G", "-1", "1k"]],
])("%p refuses what has another form", (parse, given) => {
  for (const text of given) expect(() => parse(text)).toThrow(BadValue);
});

test.each<Partial<Parameters<typeof checkFault>[0]>>([
  { action: "network", nodes: ["agent_0"], delayMs: 10, durationMs: 60_000 },
  // That the duration is missing is a problem of the option.
  { action: "network", nodes: ["agent_0"], delayMs: 10 },
  { action: "list", nodes: [] },
  { action: "heal", nodes: ["agent_0"] },
  { nodes: ["agent_0"] },
])("%j has no problem", (values) => {
  const problems = new Problems("");
  checkFault(values, problems);
  expect(problems.all).toEqual([]);
});
