/** The checks of what programs pass to the library. */
import { expect, test } from "bun:test";
import { unmarked } from "../../../src/outside-text.ts";
import { snapshotNameRule } from "../../../src/model/parse-values.ts";
import * as check from "../../../src/model/read-arguments.ts";
import { wholeNumber, wordOf } from "../../../src/model/rule.ts";

test("a time limit is any that a timer of the runtime can hold", () => {
  for (const given of [1, 1.5, 2 ** 31 - 1]) expect(check.milliseconds(given)).toBeUndefined();
  for (const given of [0, -1, 2 ** 31, Number.NaN, Infinity])
    expect(check.milliseconds(given)).toContain("between 1 and");
  expect(check.milliseconds("60s")).toBe(
    "must be a number of milliseconds, not of the type string",
  );
});

const upToThree = check.byRule(wholeNumber(1, 3));
const texts = check.listOf(check.text);
const some = check.listOf(check.text, { minimum: 1 });
const named = check.mappingOf(
  check.textOrNumber,
  check.textThat((name) => (name === "x" ? "not x" : undefined)),
);

const shared = { a: 1 };
const circular = { inner: { outer: {} } };
circular.inner.outer = circular;

test.each<
  [
    string,
    (given: unknown) => string | undefined,
    readonly unknown[],
    readonly (readonly [unknown, string])[],
  ]
>([
  [
    "text",
    check.text,
    ["a"],
    [
      ["", "empty"],
      ["a\0", "null character"],
      [1, "type number"],
      [null, "null"],
    ],
  ],
  ["any text", check.anyText, ["", "a\0"], [[1, "type number"]]],
  [
    "text or number",
    check.textOrNumber,
    ["", 1.5],
    [
      [Infinity, "a string"],
      [Number.NaN, "a string"],
    ],
  ],
  ["text or bytes", check.textOrBytes, ["", new Uint8Array()], [[[1], "an array"]]],
  ["flag", check.flag, [true, false], [["true", "type string"]]],
  ["callback", check.callback, [() => {}], [[{}, "type object"]]],
  [
    "signal",
    check.signal,
    [new AbortController().signal],
    [[{ aborted: false }, "an AbortSignal"]],
  ],
  [
    "whole number",
    upToThree,
    [1, 3],
    [
      [0, "0 is not"],
      [4, "4 is not"],
      [1.5, "1.5 is not"],
      ["2", '"2" is not'],
    ],
  ],
  [
    "choice",
    check.byRule(wordOf(["a", "c"])),
    ["a", "c"],
    [
      ["b", '"b" is not one of a, c'],
      [undefined, "the type undefined"],
      [true, "true is not"],
      [null, "null is not"],
    ],
  ],
  [
    "text by a rule",
    check.textBy(snapshotNameRule),
    ["a"],
    [
      ["A", '"A" is not a snapshot\'s name: use'],
      ["", "empty"],
      [1, "type number"],
    ],
  ],
  [
    "list",
    texts,
    [[], ["a", "b"]],
    [
      ["a", "an array"],
      [["a", ""], "element 1: "],
      [Array(1), "element 0: "],
    ],
  ],
  ["list with elements", some, [["a"]], [[[], "the array is empty"]]],
  [
    "mapping",
    named,
    [{}, { a: 1 }],
    [
      [[], "an array"],
      [{ x: 1 }, '"x": not x'],
      [{ b: null }, '"b": must be'],
    ],
  ],
  [
    "plain data",
    check.plainData,
    [null, undefined, 1, ["a", { b: true }], Object.create(null), { one: shared, other: shared }],
    [
      [1n, "not of the type bigint"],
      [{ a: ["b", () => {}] }, '"a": "1": must be plain data'],
      [Symbol("a"), "not of the type symbol"],
      [{ a: new Date(0) }, '"a": must be plain data'],
      [[new Set(["a"])], '"0": must be plain data'],
      [Buffer.from("a"), "must be plain data"],
      [{ a: [Infinity] }, "Infinity is not a number that JSON can hold"],
      [Number.NaN, "NaN is not a number that JSON can hold"],
      [circular, '"inner": "outer": the value contains itself'],
    ],
  ],
  ["anything", check.anything, [undefined, null], []],
])("a %s is accepted, and nothing else is", (_, problemOf, good, bad) => {
  for (const given of good) expect(problemOf(given)).toBeUndefined();
  for (const [given, problem] of bad)
    expect(unmarked(problemOf(given) ?? "no problem")).toContain(problem);
});

const shape = { name: check.required(check.text), size: check.optional(upToThree) };

test("an object is copied with the properties that are known and given", () => {
  const given = { name: "a", size: undefined, other: undefined };
  const read = check.readArguments<{ name: string; size?: number | undefined }>(given, shape);
  expect(read).toStrictEqual({ name: "a" });
  expect(check.objectWith(shape)(given)).toBeUndefined();
  expect(check.objectWith(shape)({ name: "" })).toBe("`name`: the value is empty");
});

test.each<[object, readonly string[]]>([
  [{}, ["`name`: required"]],
  [
    { size: 4, nmae: "a" },
    [
      '"nmae" is not one of name, size; did you mean name?',
      "`name`: required",
      "`size`: 4 is not a whole number from 1 to 3",
    ],
  ],
  [["a"], ["an array is not an object with options"]],
  [{ name: "b" }, ["b is taken"]],
])("every problem of %j is reported at once", (given, problems) => {
  const read = (): unknown =>
    check.readArguments(given as { name: string; size?: number }, shape, ({ name }) =>
      name === "b" ? ["b is taken"] : [],
    );
  expect(read).toThrow(expect.objectContaining({ id: "bad-usage", facts: { problems } }));
});
