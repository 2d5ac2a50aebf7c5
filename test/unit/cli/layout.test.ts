import { expect, test } from "bun:test";
import { outside } from "../../../src/outside-text.ts";
import { columns, pairs, table, wrap } from "../../../src/cli/layout.ts";

test.each([
  ["", 10, 0, []],
  ["one two three", 13, 0, ["one two three"]],
  ["one two three", 12, 0, ["one two", "three"]],
  ["one two three", 12, 2, ["one two", "  three"]],
  ["  one two three", 12, 2, ["  one two", "    three"]],
  ["a\n\nbb cc", 4, 0, ["a", "", "bb", "cc"]],
  ["a /very/long/path b", 6, 0, ["a", "/very/long/path", "b"]],
  ["Type:\n    a command to copy", 8, 0, ["Type:", "    a command to copy"]],
  ["one  two three", 9, 0, ["one two", "three"]],
  ["日本 日本 日本", 9, 0, ["日本 日本", "日本"]],
])("%j in %d columns", (text, width, hang, lines) => {
  expect(wrap(text, width, hang)).toEqual(lines);
});

test("the left column is as wide as its widest entry, but for one that is much wider", () => {
  const rows = [["a", "one two three"], ["bb", "x\n→ do this now"], ["a-name-that-is-too-wide", "y"]] as const; // prettier-ignore
  expect(columns(rows, 24, { margin: 0, hang: 2 })).toEqual([
    "a   one two three",
    "bb  x",
    "    → do this now",
    "a-name-that-is-too-wide",
    "    y",
  ]);
});

test("columns are as wide as their widest cell, and no cell begins a new line", () => {
  const cells = [["ID", "STATE"], ["nightly", "run\nning", "x"]]; // prettier-ignore
  expect(table(cells, 80)).toBe("ID       STATE\nnightly  run ning  x");
});

test("cells of wide characters move no column", () => {
  const cells = [["WHAT", "WHY"], ["日本日", "x"]]; // prettier-ignore
  expect(table(cells, 80)).toBe("WHAT    WHY\n日本日  x");
});

test("cells that quote others stay marked on each line, which changes no width", () => {
  const cells = [["WHO", "WHAT", "WHY"], ["me", outside("one two"), "x"]]; // prettier-ignore
  expect(table(cells, 80)).toBe(`WHO  WHAT     WHY\nme   ${outside("one two")}  x`);
  expect(table(cells, 13)).toBe(
    `WHO  WHAT  WHY\nme   ${outside("one")}   x\n     ${outside("two")}`,
  );
});

const head = [
  "ID",
  "STATE",
  "VARIANT",
  "MASTERS",
  "AGENTS",
  "PUBLIC AGENTS",
  "AGE",
  "TIME LEFT",
  "COST AT MOST",
];

test("a table that is too wide wraps at words", () => {
  const rows = [head, ["nightly-of-team-storage", "incomplete", "enterprise", "1", "0", "1", "1 h 1 min", "58 min", "$0.72"]]; // prettier-ignore
  const wide = table(rows, 120).split("\n");
  expect(wide).toHaveLength(2);
  const narrow = table(rows, 80).split("\n");
  expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(narrow.join(" ").split(/\s+/).toSorted()).toEqual(wide.join(" ").split(/\s+/).toSorted());
});

test("the heads wrap before other cells do, and cells not below their longest word", () => {
  const cells = [["ID", "TIME LEFT"], ["a b c d", "5 min"]]; // prettier-ignore
  expect(table(cells, 18)).toBe("ID       TIME LEFT\na b c d  5 min");
  expect(table(cells, 15)).toBe("ID       TIME\n         LEFT\na b c d  5 min");
  const long = [["P", "Q"], ["a longer word", "another word"]]; // prettier-ignore
  expect(table(long, 12)).toBe("P       Q\na       another\nlonger  word\nword");
});

test("a wide first column gets lines to itself only if the table doesn't fit", () => {
  expect(table([["ID", "A", "B"], ["longest", "x", "y"]], 13)).toBe("ID       A  B\nlongest  x  y"); // prettier-ignore
  const cells = [["ID", "X", "Y"], ["a-very-long-name", outside("eight ht"), "z"]]; // prettier-ignore
  expect(table(cells, 18)).toBe(`ID\n  X         Y\na-very-long-name\n  ${outside("eight ht")}  z`);
});

test("names that leave no room for the other columns get lines to themselves", () => {
  const id = "x".repeat(63);
  const lines = table([head, [id, ...head.slice(1)]], 80).split("\n");
  expect(lines).toContain(id);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
});

test("a path stays whole and doesn't narrow the other columns", () => {
  const word = "p".repeat(30);
  expect(table([["A", "B"], ["one two", word]], 30)).toBe(`A        B\none two  ${word}`); // prettier-ignore
  const path = `/${"p".repeat(90)}`;
  expect(pairs([["Cost at most", "$1"], ["SSH key", path]], 80)).toBe(`Cost at most  $1\nSSH key       ${path}`); // prettier-ignore
});
