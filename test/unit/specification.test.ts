/** test/specification.md names the test that shows each rule of the specification: each of them must be there. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const tests = join(import.meta.dir, "..");
const rows = readFileSync(join(tests, "specification.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| (?:Rule|-+) /.test(line))
  .map((line) => line.split("|").map((cell) => cell.trim()) as [string, string, string, string]);

/** The tests that a cell names, as `<file>: <title>`. */
const named = (cell: string): readonly (readonly [file: string, title: string])[] =>
  [...cell.matchAll(/`([\w./-]+\.test\.ts)`: "([^"]+)"/g)].map(([, file = "", title = ""]) => [file, title]);

/** Whether a test, or a group of tests, of the file has this title. */
function isThere(file: string, title: string): boolean {
  const path = join(tests, file);
  if (!existsSync(path)) return false;
  const source = readFileSync(path, "utf8");
  return ['"', "`"].some((quote) => source.includes(`${quote}${title}${quote},`));
}

test("every test that is named is there", () => {
  const missing = rows
    .flatMap(([, , , cell]) => named(cell))
    .filter(([file, title]) => !isThere(file, title))
    .map(([file, title]) => `${file}: ${title}`);
  expect(missing).toEqual([]);
});

test("every rule names a test, or says why it is not shown", () => {
  const unshown = rows.filter(([, , , cell]) => named(cell).length === 0 && !/^Not shown: ./.test(cell));
  expect(unshown.map(([, rule]) => rule)).toEqual([]);
  expect(rows.length).toBeGreaterThan(100);
});

test("no rule is named twice, and each section of the specification has some", () => {
  const rules = rows.map(([, rule]) => rule);
  expect(rules.filter((rule, index) => rules.indexOf(rule) !== index)).toEqual([]);
  const sections = new Set(rules.map((rule) => /^\d/.exec(rule)?.[0]).filter((digit) => digit !== undefined));
  expect([...sections].toSorted().join("")).toBe("123456789");
});
