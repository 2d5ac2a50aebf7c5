import { expect, test } from "bun:test";
import {
  inDigits,
  numberOrDigits,
  refusal,
  sha256Rule,
  wholeNumber,
  wordOf,
} from "../../../src/model/rule.ts";
import { outside } from "../../../src/outside-text.ts";

const rule = wholeNumber(0, 12);
const sum = "0123456789abcdef".repeat(4);

test.each([
  [rule.read, [0, 12], [-1, 13, 1.5, "1", Number.NaN, null]],
  [inDigits(rule).read, ["0", "12", "007"], ["13", "-1", "1.0", "", " 1", "1e0", "0x1", 1]],
  [numberOrDigits(rule), [0, 12, "0", "12"], [13, "007", "", "13", "1.0", true]],
  [wordOf(["a", "b"]).read, ["a", "b"], ["c", "", 1]],
  [sha256Rule.read, [sum, sum.toUpperCase()], [sum.slice(1), `${sum}0`, `${sum.slice(1)}g`, "", 1]],
])("%p accepts %j and refuses %j", (read, good, bad) => {
  for (const given of good) expect(read(given)).toBeDefined();
  for (const given of bad) expect(read(given)).toBeUndefined();
});

test("a checksum is read in lower case, and digits as a number", () => {
  expect(sha256Rule.read(sum.toUpperCase())).toBe(sum);
  expect(inDigits(rule).read("007")).toBe(7);
});

test("a refusal quotes the text as not our own", () => {
  expect(refusal(wordOf(["a", "b"]), "c")).toBe(`"${outside("c")}" is not one of a, b`);
  expect(refusal(wordOf(["list", "heal"]), "lits")).toBe(
    `"${outside("lits")}" is not one of list, heal; did you mean list?`,
  );
});
