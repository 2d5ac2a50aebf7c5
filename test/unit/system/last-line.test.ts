import { outside } from "../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { lastLine } from "../../../src/system/last-line.ts";

test.each([
  ["one\n  two \n\n", outside("two")],
  ["one", outside("one")],
  ["one\r\ntwo\r\n", outside("two")],
  [" \n\n", ""],
  ["", ""],
])("the last line of %j is %j", (text, line) => {
  expect(lastLine(text)).toBe(line);
});
