import { expect, test } from "bun:test";
import {
  assertFileSizes,
  assertMemory,
  assertVersion,
  megabytesOf,
} from "../../../../src/backend/vm/plan.ts";
import { isOlder } from "../../../../src/model/check.ts";
import { usableMemory } from "../../../../src/system/usable-memory.ts";

test.each([
  ["7.2.22", false],
  ["7.10.0", false],
  ["8.0.0", false],
  ["10.1.0", false],
  ["7.1.9", true],
  ["6.9.0", true],
  ["6", true],
  ["8", false],
  ["7.1-rc1", true],
  ["", false],
  ["latest", false],
])("the version %p is older than 7.2: %p", (version, expected) => {
  expect(isOlder(version, [7, 2])).toBe(expected);
});

const refusal = (work: () => void): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
};

test.each([
  ["5.2.9", "too old", "too old"],
  ["6.0.9", undefined, "cannot connect machines"],
  ["7.1.9", undefined, "cannot connect machines"],
  ["7.2.9", undefined, undefined],
] as const)("QEMU %p runs one machine (%s) or several (%s)", (version, one, several) => {
  for (const [count, text] of [
    [1, one],
    [2, several],
  ] as const) {
    const error = refusal(() => assertVersion(version, count));
    if (text === undefined) expect(error).toBeUndefined();
    else
      expect(error).toMatchObject({
        id: "machine-not-set-up",
        message: expect.stringContaining(text),
      });
  }
});

const memory = (megabytes: number, limit?: number) =>
  usableMemory(megabytes * 1024 ** 2, limit && limit * 1024 ** 2);

test("a thousand machines of 1 MB need the memory of their QEMUs", () => {
  expect(
    refusal(() => assertMemory(megabytesOf(1000, { memoryMegabytes: 1 }), memory(16 * 1024))),
  ).toMatchObject({
    id: "capacity-lacking",
    facts: { neededMegabytes: 29_000 },
  });
});

test("machines may have all of this computer's memory, and no more", () => {
  expect(refusal(() => assertMemory(4096, memory(4096)))).toBeUndefined();
  expect(refusal(() => assertMemory(4096, memory(4096 - 1e-6)))).toMatchObject({
    id: "capacity-lacking",
    message: "The nodes need 4096 MB of memory, but this computer has 4095 MB.",
    facts: { neededMegabytes: 4096, totalMegabytes: 4095 },
  });
});

test.each([
  ["a lower limit of the control group counts", 1024, "this program's control group has 1024 MB."],
  ["no limit is no limit", 0, undefined],
  ["nor is one that is higher than the computer's memory", 2 ** 43, undefined],
])("%s", (_, limit, expected) => {
  const found = refusal(() => assertMemory(4096, memory(8192, limit)));
  expect(found instanceof Error ? found.message.split("but ")[1] : undefined).toBe(expected);
});

test.each([
  ["Max file size             unlimited            unlimited            bytes", undefined],
  ["Max file size             21474836480          unlimited            bytes", undefined],
  [
    "Max file size             209715200            unlimited            bytes",
    "A node may write a file of 20480 MB, and this process may write 200 MB at most.",
  ],
  ["", undefined],
])("the largest file that a node may write must be within the limit: %j", (line, expected) => {
  const limits = `Limit  Soft Limit  Hard Limit  Units\n${line}\n`;
  const found = refusal(() =>
    assertFileSizes({ memoryMegabytes: 2048, diskMegabytes: 20_480 }, limits),
  );
  expect(found instanceof Error ? found.message : undefined).toBe(expected);
});
