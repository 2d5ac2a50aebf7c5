import { expect, test } from "bun:test";
import { costText, maximumCost } from "../../../../src/backend/cloud/launch/prices.ts";

test("a general-purpose large machine costs about 24 cents for its lifetime", () => {
  expect(maximumCost("m5.large", 1)).toBe(0.24);
  expect(maximumCost("m5.large", 4)).toBe(0.96);
});

test("a type that isn't in the table has no known price", () => {
  expect(maximumCost("x9.enormous", 1)).toBeUndefined();
  expect(costText("x9.enormous", 3)).toMatchInlineSnapshot(
    `"price unknown (3 × x9.enormous for two hours); storage and public addresses cost extra"`,
  );
});

test("says what the sum is made of", () => {
  expect(costText("m5.large", 3)).toMatchInlineSnapshot(
    `"about $0.72 (3 × m5.large for two hours, prices of 2025-06-01); licensed images cost extra"`,
  );
});
