/** The checks of what programs pass to the library. */
import { expect, test } from "bun:test";
import * as check from "../../../src/model/read-arguments.ts";

test("a time limit is any that a timer of the runtime can hold", () => {
  for (const given of [1, 1.5, 2 ** 31 - 1]) expect(check.milliseconds(given)).toBeUndefined();
  for (const given of [0, -1, 2 ** 31, Number.NaN, Infinity])
    expect(check.milliseconds(given)).toContain("between 1 and");
  expect(check.milliseconds("60s")).toBe("must be a number of milliseconds, not of the type string");
});
