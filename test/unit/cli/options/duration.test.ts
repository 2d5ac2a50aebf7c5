import { expect, test } from "bun:test";
import { parseDuration } from "../../../../src/cli/options/value-types.ts";
import { formatDuration } from "../../../../src/system/amounts.ts";

test.each([
  ["250ms", 250],
  ["90s", 90_000],
  ["15m", 900_000],
  ["1h30m", 5_400_000],
  ["2h", 7_200_000],
  ["1d", 86_400_000],
  ["1m1s1ms", 61_001],
  ["24d", 2_073_600_000],
  ["1ms", 1],
  ["2147483647ms", 2_147_483_647],
])("%s is %d ms", (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each(["", "15", "1.5h", "-5m", "15 m", "15M", "30m1h", "m", "1e3s"])(
  "%p is not a duration",
  (text) => {
    expect(() => parseDuration(text)).toThrow("is not a duration such as 90s, 15m or 1h30m");
  },
);

test.each(["0s", "2147483648ms", "25d", "99999999999999999999h"])("%s is out of range", (text) => {
  expect(() => parseDuration(text)).toThrow("is not between 1ms and 24d");
});

test.each([
  [0, "0.0 s"],
  [420, "0.4 s"],
  [59_949, "59.9 s"],
  [59_950, "1 min"],
  [125_000, "2 min 5 s"],
  [3_599_499, "59 min 59 s"],
  [3_599_999, "1 h"],
  [7_140_000, "1 h 59 min"],
])("%d ms is shown as %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
