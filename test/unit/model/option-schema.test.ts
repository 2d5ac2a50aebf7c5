import { expect, test } from "bun:test";
import { readOptions } from "../../../src/model/option-schema.ts";
import { matching } from "../../../src/model/reader.ts";
import { inDigits, wholeNumber, wordOf } from "../../../src/model/rule.ts";

const schema = {
  size: { summary: "", default: 7, ...inDigits(wholeNumber(0, 20)) },
  name: { summary: "", read: matching(/^[a-z]+$/), what: "a name" },
  kind: { summary: "", repeatable: true, ...wordOf(["x", "y"]) },
  path: { summary: "", read: matching(/^\/[a-z]+$/), what: "a path" },
} as const;
const accept = (values: object) => ({ value: values });

test.each<[object, object]>([
  [{}, { size: 7, name: undefined, kind: [], path: undefined }],
  [
    { size: 0, name: "a", kind: "x", path: "/a" },
    { size: 0, name: "a", kind: ["x"], path: "/a" },
  ],
  [
    { size: "12", kind: ["x", "y"] },
    { size: 12, name: undefined, kind: ["x", "y"], path: undefined },
  ],
])("the options %j are read as %j", (given, values) => {
  expect(readOptions(schema, given, accept).values).toEqual(values as never);
});

test("every problem is reported at once, those of several options together as well", () => {
  const seen: object[] = [];
  const parse = (values: object) => {
    seen.push(values);
    return { problems: ["size and name go together"] };
  };
  const given = { size: "x", name: "A", kind: ["x", "z"], path: "/" };
  const problems = [
    '`size`: "x" is not a whole number from 0 to 20',
    '`name`: "A" is not a name',
    '`kind`: "z" is not one of x, y',
    '`path`: "/" is not a path',
    "size and name go together",
  ];
  expect(() => readOptions(schema, given, parse)).toThrow(
    expect.objectContaining({ id: "bad-usage", facts: { problems } }),
  );
  // An option that is wrong by itself counts as absent, and has no default.
  expect(seen).toStrictEqual([
    { size: undefined, name: undefined, kind: undefined, path: undefined },
  ]);
  expect(() => readOptions(schema, { size: "x" }, accept)).toThrow(
    expect.objectContaining({ id: "bad-usage" }),
  );
});

test("a fault in a reader is no problem of the user's", () => {
  const broken = {
    size: {
      summary: "",
      what: "a size",
      read: (): number => {
        throw new TypeError("a bug");
      },
    },
  };
  expect(() => readOptions(broken, { size: 1 }, accept)).toThrow(TypeError);
});
