import { expect, test } from "bun:test";
import { createOutputTail } from "../../../../src/ssh/connection/command-output.ts";

test.each([
  [["abc", "def"], "bcdef"],
  [["ab"], "ab"],
  [["abcdefgh"], "defgh"],
  [[], ""],
  [["a", "", "bcdef", "g"], "cdefg"],
])("of %j the last five characters are kept: %j", (parts, expected) => {
  const tail = createOutputTail(5);
  for (const part of parts) tail.add(part);
  expect(tail.text()).toBe(expected);
});
