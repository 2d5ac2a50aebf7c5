import { expect, test } from "bun:test";
import { costText, maximumCost } from "../../../../src/backend/cloud/lifetime.ts";

// Shows R9, R78.
test("a general-purpose large machine costs about 24 cents for its lifetime", () => {
  expect(maximumCost("m5.large", 1)).toBe(0.24);
  expect(maximumCost("m5.large", 4)).toBe(0.96);
});

test.each(["t3", "m4", "m5", "m6i", "c5", "r5"])(
  "within %s, twice the size costs twice as much",
  (family) => {
    const sizes = ["large", "xlarge", "2xlarge", "4xlarge"].map((size) =>
      maximumCost(`${family}.${size}`, 100),
    );
    const known = sizes.filter((cost) => cost !== undefined);
    expect(known.length).toBeGreaterThanOrEqual(3);
    known.forEach((cost, index) => expect(cost / (known[0] ?? 0)).toBeCloseTo(2 ** index, 1));
  },
);

test("general-purpose machines of two generations cost the same, memory more and computing less", () => {
  const cost = (type: string): number => maximumCost(type, 100) ?? 0;
  expect(cost("m6i.large")).toBe(cost("m5.large"));
  expect(cost("c5.large")).toBeLessThan(cost("m5.large"));
  expect(cost("r5.large")).toBeGreaterThan(cost("m5.large"));
  expect(cost("r5.large")).toBeLessThan(2 * cost("m5.large"));
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
