import { expect, test } from "bun:test";
import { isOlder } from "../../../../src/backend/vm/plan.ts";

test.each<[readonly [number, number], boolean]>([
  [[7, 2], false],
  [[7, 10], false],
  [[8, 0], false],
  [[10, 1], false],
  [[7, 1], true],
  [[6, 9], true],
])("a QEMU of version %p is older than 7.2: %p", (version, expected) => {
  expect(isOlder(version, [7, 2])).toBe(expected);
});
