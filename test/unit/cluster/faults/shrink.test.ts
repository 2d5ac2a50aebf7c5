import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { shrink } from "../../../../src/cluster/faults/shrink.ts";
import { holds } from "../../../support/holds.ts";

const numbers = (count: number): readonly number[] =>
  Array.from({ length: count }, (_, index) => index + 1);

test("exactly the faults that are needed are left, whichever they are", async () => {
  const cases = [fc.integer({ min: 1, max: 30 }), fc.array(fc.nat(29), { minLength: 1 })] as const;
  await holds(100, [...cases], async (count, indexes) => {
    const needed = new Set(indexes.map((index) => (index % count) + 1));
    const fails = async (some: readonly number[]): Promise<boolean> =>
      [...needed].every((each) => some.includes(each));
    expect(await shrink(numbers(count), 10_000, fails)).toEqual({
      smallest: numbers(count).filter((each) => needed.has(each)),
      isSmallest: true,
    });
  });
});

test.each([0, 1, 2, 5])(
  "it is tried %d times at most, and what is left has failed",
  async (tries) => {
    const failed: (readonly number[])[] = [numbers(16)];
    let tried = 0;
    const { smallest, isSmallest } = await shrink(numbers(16), tries, async (some) => {
      tried += 1;
      const isFailing = some.includes(11);
      if (isFailing) failed.push(some);
      return isFailing;
    });
    expect(tried).toBe(tries);
    expect(isSmallest).toBe(false);
    expect(failed).toContainEqual(smallest);
  },
);

test("what fails without any fault needs one try, also after a single fault", async () => {
  for (const count of [1, 2, 9]) {
    const tried: (readonly number[])[] = [];
    const fails = async (some: readonly number[]): Promise<boolean> => tried.push(some) > 0;
    const found = await shrink(numbers(count), 5, fails);
    expect(found).toEqual({ smallest: [], isSmallest: true });
    expect(tried).toEqual([[]]);
  }
});

test("a single fault is the smallest plan only if the command was tried without it", async () => {
  const passes = async (): Promise<boolean> => false;
  expect(await shrink([3], 1, passes)).toEqual({ smallest: [3], isSmallest: true });
  expect(await shrink([3], 0, passes)).toEqual({ smallest: [3], isSmallest: false });
});
