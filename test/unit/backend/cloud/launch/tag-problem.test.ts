import { expect, test } from "bun:test";
import { tagProblem } from "../../../../../src/backend/cloud/options.ts";

test.each([
  ["owner", "me"],
  ["owner", ""],
  ["Name", "my cluster"],
  ["k".repeat(128), "v".repeat(256)],
  ["ключ", "значение"],
])("%p: %p is a tag", (key, value) => {
  expect(tagProblem(key, value, [])).toBeUndefined();
});

test.each([
  ["", "x", "a tag needs a key: <TAG_KEY>:<TAG_VALUE>"],
  ["aws:owner", "x", 'tag "aws:owner:x" begins with the reserved "aws:"'],
  ["AWS:owner", "x", 'tag "AWS:owner:x" begins with the reserved "aws:"'],
  ["cluster-e2e:role", "x", 'tag "cluster-e2e:role:x" begins with the reserved "cluster-e2e:"'],
  ["k".repeat(129), "x", `tag key "${"k".repeat(20)}…" is longer than 128 characters`],
  ["key", "v".repeat(257), 'the value of tag "key" is longer than 256 characters'],
  ["key", "a\u0000b", 'tag "key" contains a control character'],
  ["taken", "x", 'tag "taken" is set twice'],
])("%p: %p is refused", (key, value, problem) => {
  expect(tagProblem(key, value, [{ key: "taken", value: "" }])).toBe(problem);
});

test("leaves room for our own tags among the fifty", () => {
  const others = Array.from({ length: 38 }, (_, index) => ({ key: `key-${index}`, value: "" }));
  expect(tagProblem("one-more", "x", others.slice(1))).toBeUndefined();
  expect(tagProblem("one-more", "x", others)).toBe("more than 38 custom tags");
});
