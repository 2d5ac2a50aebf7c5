import { expect, test } from "bun:test";
import {
  compareReleases,
  releaseNumbers,
} from "../../../../src/platform/artifact/artifact-version.ts";

test.each([
  ["1.13.4", [1, 13, 4]],
  ["v2.1.0-beta3", [2, 1, 0]],
  ["2", undefined],
  ["beta", undefined],
])("the numbers of %s are %j", (text, numbers) => {
  expect(releaseNumbers(text)).toEqual(numbers as number[]);
});

test.each([
  [[2, 1], [2, 1, 0], 0],
  [[2, 1, 0], [2, 1], 0],
  [[2, 1], [2, 1, 1], -1],
  [[2, 10], [2, 9, 9], 1],
  [[1, 99], [2, 0], -1],
])("%j against %j: %d", (first, second, sign) => {
  expect(Math.sign(compareReleases(first, second))).toBe(sign);
});
