/** test/specification.md gives each rule an id. Tests name the rules that they show by these ids. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const tests = join(import.meta.dir, "..");
const page = readFileSync(join(tests, "specification.md"), "utf8");
const rules = page
  .split("\n")
  .filter((line) => /^\| R\d+ /.test(line))
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .map(([, id = "", rule = "", notShown = ""]) => ({ id, rule, notShown }));

interface Tag {
  readonly place: string;
  readonly ids: readonly string[];
  /** The line below, which must begin a test or a group of tests. */
  readonly next: string;
}

/** The comments of a file that name rules, such as `// Shows R3, R14.` */
function tagsIn(file: string, text: string): readonly Tag[] {
  const lines = text.split("\n");
  return lines.flatMap((line, index) => {
    const named = /^\s*\/\/ Shows (R\d.*)\.$/.exec(line)?.[1];
    if (named === undefined) return [];
    return [
      {
        place: `${file}:${index + 1}`,
        ids: named.split(", "),
        next: lines[index + 1]?.trim() ?? "",
      },
    ];
  });
}

const tags = [...new Bun.Glob("{unit,integration,e2e}/**/*{.test,conformance}.ts").scanSync(tests)]
  .toSorted()
  .flatMap((file) => tagsIn(file, readFileSync(join(tests, file), "utf8")));

test("each rule is shown by a test, or says why it is not", () => {
  const shown = new Set(tags.flatMap(({ ids }) => ids));
  expect(rules.filter(({ id, notShown }) => !shown.has(id) && notShown === "")).toEqual([]);
  expect(rules.length).toBeGreaterThan(100);
});

test("each rule that a test names is in the list", () => {
  const known = new Set(rules.map(({ id }) => id));
  const strays = tags.flatMap(({ place, ids }) =>
    ids.filter((id) => !known.has(id)).map((id) => `${place}: ${id}`),
  );
  expect(strays).toEqual([]);
});

test("each comment that names rules is right above a test or a group of tests", () => {
  const misplaced = tags.filter(({ next }) => !/^(?:test|describe)\w*[.(<]/.test(next));
  expect(misplaced).toEqual([]);
});

test("no id and no rule is there twice, and the next id is above all", () => {
  const ids = rules.map(({ id }) => Number(id.slice(1)));
  expect(new Set(ids).size).toBe(rules.length);
  expect(new Set(rules.map(({ rule }) => rule)).size).toBe(rules.length);
  expect(Number(/\*\*Next id: R(\d+)\.\*\*/.exec(page)?.[1])).toBe(Math.max(...ids) + 1);
});

test("ids, their place and the line below are read from a comment", () => {
  const text = [
    "const a = 1;",
    "  // Shows R3, R14.",
    '  test("one", () => {});',
    "// Shows what happens.",
    "test(",
  ].join("\n");
  expect(tagsIn("e2e/a.test.ts", text)).toEqual([
    { place: "e2e/a.test.ts:2", ids: ["R3", "R14"], next: 'test("one", () => {});' },
  ]);
});
