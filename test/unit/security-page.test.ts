/** The page on security promises nothing without a test that shows it. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { testNames } from "../support/test-names.ts";

const page = join(import.meta.dir, "..", "..", "src", "cluster", "README.md");

interface Promised {
  readonly promise: string;
  /** Each test by its file, relative to the page, and its name. */
  readonly tests: readonly { readonly file: string; readonly name: string }[];
}

/** The rows of the tables between "What is promised" and the next heading of that level. */
function promisesIn(text: string): readonly Promised[] {
  const section = /^## What is promised$(.*?)^## /ms.exec(text)?.[1] ?? "";
  const rows = section
    .split("\n")
    .filter((line) => line.startsWith("|") && !/^\| (?:Promise|-+) +\|/.test(line));
  return rows.map((row) => {
    const [promise = "", shownBy = ""] = row
      .split("|")
      .slice(1)
      .map((cell) => cell.trim());
    return { promise, tests: testsIn(shownBy) };
  });
}

function testsIn(text: string): Promised["tests"] {
  const links = [...text.matchAll(/\[((?:[^\]\\]|\\.)+)\]\(([^)]+\.ts)\)/g)];
  return links.map(([, name = "", file = ""]) => ({ file, name: name.replace(/\\(.)/g, "$1") }));
}

/** A name may end in a template's value, such as the reason why a machine lacks something. */
const isNamed = (names: readonly string[], name: string): boolean =>
  names.some((each) => each === name || each.replace(/ \($/, "") === name);

const text = readFileSync(page, "utf8");
const promises = promisesIn(text);

test("each promise names a test that shows it", () => {
  expect(promises.filter(({ tests }) => tests.length === 0)).toEqual([]);
  expect(promises.length).toBeGreaterThan(30);
});

test("each test that the page names exists", () => {
  const read = (file: string): readonly string[] => {
    const path = join(dirname(page), file);
    return testNames(path, readFileSync(path, "utf8"));
  };
  const strays = testsIn(text)
    .filter(({ file, name }) => !isNamed(read(file), name))
    .map(({ file, name }) => `${file}: ${name}`);
  expect(strays).toEqual([]);
});

test("promises and the names of tests are read from tables", () => {
  const example = [
    "## What is promised",
    "| Promise | Shown by |",
    "| ------- | -------- |",
    "| Nothing | |",
    "| All     | [a \\[b\\]](../a.test.ts); [c](../d.test.ts), [page](../e.md) |",
    "## What is not promised",
    "| Other   | |",
  ].join("\n");
  const tests = [
    { file: "../a.test.ts", name: "a [b]" },
    { file: "../d.test.ts", name: "c" },
  ];
  expect(promisesIn(example)).toEqual([
    { promise: "Nothing", tests: [] },
    { promise: "All", tests },
  ]);
});

test("names are read from every way to declare a test, and from nothing else", () => {
  const example = [
    'test("one", () => { expect("no test").toBe(""); });',
    'test.skipIf(true)(`two (${"x"})`, () => {});',
    'describe("group", () => { test.each([["no test"]])("three %s", () => {}); });',
    'say("no test");',
  ].join("\n");
  expect(testNames("a.test.ts", example)).toEqual(["one", "two (", "three %s"]);
});
