import { expect, test } from "bun:test";
import { count } from "../../../../src/cli/options/value-types.ts";

const { parse } = count(2, 9);
const invocation = { cwd: "/", environment: {} };

test.each([
  ["2", 2],
  ["9", 9],
  ["009", 9],
])("%s is a count from 2 to 9", async (given, number) => {
  expect(await parse(given, invocation)).toBe(number);
});

test.each(["1", "10", "", "-2", "2.0", "2e0", " 2", "0x2"])(
  "%j is no count from 2 to 9",
  async (given) => {
    expect(async () => parse(given, invocation)).toThrow("is not a whole number from 2 to 9");
  },
);
