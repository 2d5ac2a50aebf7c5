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
    const smallest = await shrink(numbers(count), 10_000, fails);
    expect(smallest).toEqual(numbers(count).filter((each) => needed.has(each)));
  });
});

test.each([0, 1, 2, 5])(
  "it is tried %d times at most, and what is left has failed",
  async (tries) => {
    const failed: (readonly number[])[] = [numbers(16)];
    let tried = 0;
    const smallest = await shrink(numbers(16), tries, async (some) => {
      tried += 1;
      const isFailing = some.includes(11);
      if (isFailing) failed.push(some);
      return isFailing;
    });
    expect(tried).toBe(tries);
    expect(failed).toContainEqual(smallest);
  },
);
