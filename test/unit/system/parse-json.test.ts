import { expect, test } from "bun:test";
import { parseJson } from "../../../src/system/files/read-text.ts";

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;

test.each([
  '{"a":[1,"x",null]}',
  " 1 ",
  nested(100),
  `"\\"${"[".repeat(500)}"`,
  `[${'[],{},1,"x",'.repeat(500)}0]`,
])("%s is read", (text) => {
  expect(parseJson(text)).toEqual(JSON.parse(text));
});

test.each([
  "",
  "{",
  "undefined",
  '"a',
  nested(101),
  `{"a":${nested(100)}}`,
  `["\\\\",${nested(100)}]`,
  "[".repeat(1_000_000),
])("a text that is no JSON, or is nested too deeply, has no value (%#)", (text) => {
  expect(parseJson(text)).toBeUndefined();
});
