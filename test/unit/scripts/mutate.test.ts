/** The parts of scripts/mutate.ts that look at texts only. */
import { expect, test } from "bun:test";
import { reaches, readCoverage, type TestFile } from "../../../scripts/mutate/baseline.ts";
import { inBatches } from "../../../scripts/mutate/check-types.ts";
import { chooseTests } from "../../../scripts/mutate/choose-tests.ts";
import { findMutants, type Mutant } from "../../../scripts/mutate/find-mutants.ts";
import { pick } from "../../../scripts/mutate/pick.ts";
import { renderReport, layerOf } from "../../../scripts/mutate/report.ts";

const changesOf = (text: string): readonly string[] =>
  findMutants("src/a.ts", text).map(({ before, after }) => `${before} → ${after}`);

test.each([
  ["if (a) b = 1;", ["a → true", "a → false", "1 → 2"]],
  ["const a = b ? c : d;", ["b → true", "b → false"]],
  ["const a = !b && c < 3;", ["!b → b", "&& → ||", "< → <=", "3 → 4"]],
  ["const a = b ?? [c, d];", ["?? → &&", "[c, d] → []"]],
  ["await a.b();", ["await a.b(); → ;"]],
  ["const a = b.some(c);", ["some → every"]],
  ["const a = b.toString();", []],
  ["const a: 1 | true = b - 2;", ["- → +", "2 → 3"]],
  ["const a = 60_000;", ["60_000 → 0"]],
])("%s is changed in each of these ways", (text, expected) => {
  expect(changesOf(text).toSorted()).toEqual([...expected].toSorted());
});

test("a mutant knows its lines", () => {
  const [mutant] = findMutants("src/a.ts", "\n\nfoo(\n  a,\n);\n");
  expect(mutant).toMatchObject({ path: "src/a.ts", line: 3, lastLine: 5, start: 2, after: ";" });
});

test("the same seed picks the same entries, in their order; another picks others", () => {
  const entries = Array.from({ length: 1000 }, (_, index) => index);
  const picked = pick(entries, 20, 1);
  expect(picked).toHaveLength(20);
  expect(picked).toEqual(picked.toSorted((one, other) => one - other));
  expect(pick(entries, 20, 1)).toEqual(picked);
  expect(pick(entries, 20, 2)).not.toEqual(picked);
});

const mutantAt = (path: string, line: number): Mutant => ({
  path,
  line,
  lastLine: line,
  start: 0,
  end: 1,
  before: "<",
  after: "<=",
});

test("mutants of one file are never checked together", () => {
  const [a, b, c] = [mutantAt("src/a.ts", 1), mutantAt("src/a.ts", 2), mutantAt("src/b.ts", 1)];
  expect(inBatches([a, b, c])).toEqual([[a, c], [b]]);
});

const report =
  "TN:\nSF:src/cli/a.ts\nDA:1,1\nDA:3,0\nDA:5,7\nend_of_record\nTN:\nSF:test/b.ts\nDA:1,1\nend_of_record\n";
const testFile = (path: string, changes: Partial<TestFile>): TestFile => ({
  path,
  passes: true,
  seconds: 1,
  lines: readCoverage(report),
  hasPrograms: false,
  ...changes,
});

test.each([
  ["src/cli/a.ts", 1, true],
  ["src/cli/a.ts", 2, true],
  ["src/cli/a.ts", 3, false],
  ["src/cli/a.ts", 4, false],
  ["src/cli/a.ts", 6, true],
  ["src/cli/c.ts", 1, false],
])(
  "whether a test reaches line %s:%d is %p: lines that are not counted are like those above",
  (path, line, expected) => {
    expect(reaches(testFile("test/unit/cli/a.test.ts", {}), mutantAt(path, line))).toBe(expected);
  },
);

test("unit tests come first and together, then those of the same layer, then quick ones, within two minutes", () => {
  const files = [
    testFile("test/integration/ssh/slow.test.ts", { seconds: 100 }),
    testFile("test/integration/ssh/quick.test.ts", { seconds: 20 }),
    testFile("test/integration/ssh/broken.test.ts", { passes: false }),
    testFile("test/integration/cli/own.test.ts", { seconds: 40 }),
    testFile("test/unit/ssh/one.test.ts", {}),
    testFile("test/unit/cli/other.test.ts", {}),
  ];
  const chosen = chooseTests(mutantAt("src/cli/a.ts", 1), files);
  expect(
    chosen.map((group) => group.map(({ path }) => path.replace(/^test\/|\.test\.ts$/g, ""))),
  ).toEqual([
    ["unit/ssh/one", "unit/cli/other"],
    ["integration/cli/own"],
    ["integration/ssh/quick"],
  ]);
});

test("if no test is known to execute it, tests of its layer that start programs are chosen", () => {
  const files = ["cli", "ssh"].map((layer) =>
    testFile(`test/integration/${layer}/a.test.ts`, { hasPrograms: true }),
  );
  expect(chooseTests(mutantAt("src/cli/a.ts", 3), files)).toEqual([[files[0]!]]);
});

test("the table has a row for each layer, and survivors are listed with their change", () => {
  const verdicts = [
    { mutant: mutantAt("src/backend/vm/qemu/a.ts", 3), by: "types", note: "" },
    { mutant: mutantAt("src/cli/a.ts", 7), by: "nothing", note: "2 test files" },
    { mutant: mutantAt("src/cli/b.ts", 7), by: "unit", note: "test/unit/cli/b.test.ts" },
  ] as const;
  expect(renderReport(verdicts).split("\n")).toEqual([
    "| layer | mutants | types | unit | integration | time limit | survived | killed |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
    "| backend/vm | 1 | 1 | 0 | 0 | 0 | 0 | 100 % |",
    "| cli | 2 | 0 | 1 | 0 | 0 | 1 | 50 % |",
    "| all | 3 | 1 | 1 | 0 | 0 | 1 | 67 % |",
    "",
    "Survived:",
    "- src/cli/a.ts:7  < → <=  (2 test files)",
  ]);
});

test.each([
  ["src/cli/options/a.ts", "cli"],
  ["src/backend/vm/qemu/a.ts", "backend/vm"],
  ["src/backend/shared/foreign-resource.ts", "backend/shared"],
  ["src/backend/contract.ts", "backend"],
  ["src/errors.ts", "errors.ts"],
])("%s is in the layer %s", (path, layer) => {
  expect(layerOf(path)).toBe(layer);
});
