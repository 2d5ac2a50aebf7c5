import { describe, expect, test } from "bun:test";
import { expressionOf, isLinePattern, matchesLine } from "../../../src/model/line-pattern.ts";

describe("a pattern", () => {
  test.each([
    ["fatal", "level=fatal msg=x", true],
    ["fatal", "level=FATAL", false],
    ["raft*panic", "raft: panic", true],
    ["raft*panic", "panic: raft", false],
    ["*fatal*", "a fatal error", true],
    ["a.c", "abc", false],
    ["aba*ba", "aba", false],
  ])("%s in %s: %p", (pattern, line, isMatch) => {
    expect(matchesLine(pattern, line)).toBe(isMatch);
  });

  test("needs a text that not every line has", () => {
    expect(["abc", "*abc", "a*bcd"].every(isLinePattern)).toBe(true);
    expect(["", "*", "ab", "ab*cd", "x".repeat(201)].some(isLinePattern)).toBe(false);
  });

  test("takes linear time", () => {
    const line = "ab".repeat(500_000);
    expect(matchesLine(`${"a*".repeat(90)}abc`, line)).toBe(false);
  });

  test("has an expression that finds what it matches, with every character of grep", () => {
    expect(expressionOf("x*[a].{b}(c)|d?+^$\\*y")).toBe(
      "\\[a\\]\\.\\{b\\}\\(c\\)\\|d\\?\\+\\^\\$\\\\",
    );
  });
});
