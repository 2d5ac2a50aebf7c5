import { heapStats } from "bun:jsc";
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

function objects(): number {
  Bun.gc(true);
  return heapStats().objectCount;
}

test("a text in very small pieces takes hardly more memory than in one", () => {
  const tail = createOutputTail(1_000_000);
  const before = objects();
  for (let number = 0; number < 200_000; number += 1)
    tail.add(Buffer.from(String(100_000 + number)).toString());
  expect(objects() - before).toBeLessThan(20_000);
  expect(tail.text()).toHaveLength(1_000_000);
  expect(tail.text()).toEndWith("299998299999");
});

test("of an endless text, only the end stays in the memory", () => {
  const tail = createOutputTail(1_000);
  const before = objects();
  for (let number = 0; number < 10_000; number += 1)
    tail.add(Buffer.alloc(5_000, `${number}.`).toString());
  expect(objects() - before).toBeLessThan(6_000);
  expect(tail.text()).toHaveLength(1_000);
});
