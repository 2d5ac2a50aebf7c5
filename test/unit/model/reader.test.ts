import { expect, test } from "bun:test";
import {
  type Reader,
  anyMapping,
  anything,
  boolean,
  field,
  integer,
  lenient,
  list,
  mapping,
  matching,
  number,
  object,
  oneOf,
  optional,
  positiveInteger,
  refined,
  string,
  withDefault,
} from "../../../src/model/reader.ts";
import { parseJson } from "../../../src/system/files/read-text.ts";

const values = [
  undefined,
  null,
  "",
  "a",
  "1",
  0,
  -1,
  1,
  1.5,
  2 ** 53,
  Number.NaN,
  true,
  false,
  [],
  ["a"],
  {},
  { a: 1 },
];

test.each([
  ["string", string, ["", "a", "1"]],
  ["number", number, [0, -1, 1, 1.5, 2 ** 53, Number.NaN]],
  ["integer", integer, [0, -1, 1]],
  ["positive integer", positiveInteger, [1]],
  ["boolean", boolean, [true, false]],
  ["expression", matching(/^[a-z]$/), ["a"]],
  ["choice", oneOf("a", "b"), ["a"]],
  ["list", list(string), [[], ["a"]]],
  ["mapping", mapping(matching(/^a$/), number), [{}, { a: 1 }]],
  ["mapping with other keys", mapping(matching(/^b$/), number), [{}]],
  ["any mapping", anyMapping, [{}, { a: 1 }]],
  ["object", object({ a: number }), [{ a: 1 }]],
  ["field", field("a", number), [1]],
  ["default", withDefault(boolean, false), values.map((value) => value === true)],
  ["refined value", refined(string, (text) => (text === "" ? undefined : text.length)), [1, 1]],
] as const)("a %s is read, and nothing else is", (_, reader: Reader<unknown>, expected) => {
  expect(values.map(reader).filter((value) => value !== undefined)).toEqual(expected as never);
});

const node = object({ name: string, size: optional(integer), seen: lenient(number) });

test("an object's fields are read, and others are left out", () => {
  expect(node({ name: "a", size: 1, seen: 2, more: 3 })).toStrictEqual({
    name: "a",
    size: 1,
    seen: 2,
  });
});

test("an optional field may be missing but not malformed; a lenient one may be both", () => {
  expect(node({ name: "a" })).toStrictEqual({ name: "a", size: undefined, seen: undefined });
  expect(node({ name: "a", size: "1" })).toBeUndefined();
  expect(node({ name: "a", size: null })).toBeUndefined();
  expect(node({ name: "a", seen: "2" })).toStrictEqual({
    name: "a",
    size: undefined,
    seen: undefined,
  });
  expect(node({ size: 1 })).toBeUndefined();
});

test("shapes nest, and one wrong value refuses the whole", () => {
  const nodes = object({ nodes: list(node) });
  expect(nodes({ nodes: [{ name: "a" }, { name: "b" }] })?.nodes.map(({ name }) => name)).toEqual([
    "a",
    "b",
  ]);
  expect(nodes({ nodes: [{ name: "a" }, { name: 1 }] })).toBeUndefined();
  expect(nodes([])).toBeUndefined();
});

test("what an object inherits isn't read", () => {
  expect(field("constructor", anything)({})).toBeUndefined();
  expect(object({ toString: anything })({})).toBeUndefined();
  expect(object({ name: string })(Object.create({ name: "a" }))).toBeUndefined();
  expect(mapping(string, number)(Object.create({ a: 1 }))).toEqual({});
});

test("a key such as __proto__ is data", () => {
  const found = parseJson('{"__proto__":{"name":"a"},"constructor":{"name":"b"}}');
  expect(object({ name: string })(found)).toBeUndefined();
  const read = mapping(string, object({ name: string }))(found)!;
  expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  expect(Object.entries(read)).toEqual([
    ["__proto__", { name: "a" }],
    ["constructor", { name: "b" }],
  ]);
});

test("it reads each element once, and none after the first of another shape", () => {
  const seen: unknown[] = [];
  const counted = (found: unknown): unknown => {
    seen.push(found);
    return string(found);
  };
  expect(list(counted)(["a", 1, "b"])).toBeUndefined();
  expect(mapping(string, counted)({ a: "c", b: 2, c: "d" })).toBeUndefined();
  expect(seen).toEqual(["a", 1, "c", 2]);
});

test("a large value takes time in proportion", () => {
  const large = Array.from({ length: 300_000 }, (_, index) => ({ name: String(index) }));
  expect(list(node)(large)?.length).toBe(large.length);
  expect(list(node)([...large, 1])).toBeUndefined();
});
