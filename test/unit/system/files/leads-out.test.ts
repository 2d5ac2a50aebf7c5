import { expect, test } from "bun:test";
import { linkThatLeadsOut } from "../../../../src/system/files/read-tar.ts";

test.each([
  ["a", { a: "b" }, false],
  ["a", { a: "./b/../c" }, false],
  ["a", { a: "b/c/../../d" }, false],
  ["a", { a: "b/c/../../.." }, true],
  ["a", { a: "./.." }, true],
  ["a", { a: "b//../.." }, true],
  // Nothing is known about "x", so "l" in it is no link.
  ["a", { a: "x/l/../../..", l: "s/t/u" }, true],
  ["d/a", { "d/a": "../b" }, false],
  ["d/a", { "d/a": "../../b" }, true],
  ["a", { a: "/b" }, true],
  ["a", { a: "b/" }, false],
  ["a", { a: ".." }, true],
  ["a", { a: "b/c", b: "d", "d/c": "../e" }, false],
  ["a", { a: "b/c", b: "d", "d/c": "../../e" }, true],
  ["d/e/a", { "d/e/a": "../up/..", "d/up": "../d" }, false],
  ["a", { a: "d/l/../..", "d/l": ".." }, true],
  ["a", { a: "b", b: "c", c: "a" }, true],
  ["x", { x: "A/..", a: "sub" }, false],
  ["x", { x: "d/A/..", "d/a": ".." }, true],
  ["x", { x: "D/a/..", "d/a": ".." }, true],
  ["D/x", { "D/x": "../d/A/..", "d/a": ".." }, true],
  ["x", { x: "d/\u00e9/..", "d/e\u0301": ".." }, true],
])("link %s of %j leads out: %p", (link, links, expected) => {
  expect(linkThatLeadsOut(new Map(Object.entries(links)))).toBe(expected ? link : undefined);
});

test("a chain of ten links is followed, and no longer one", () => {
  const chain = (count: number): ReadonlyMap<string, string> =>
    new Map(Array.from({ length: count }, (_, index) => [`l${index}`, `l${index + 1}`]));
  expect(linkThatLeadsOut(chain(10))).toBeUndefined();
  expect(linkThatLeadsOut(chain(11))).toBe("l0");
  // Nor does it exhaust the stack.
  expect(linkThatLeadsOut(chain(200_000))).toBe("l0");
});

test.each([
  ["l0/../l1", undefined],
  ["l0/../l0", "twice"],
])("ten links may be followed in all, also by a path with several: %s", (target, expected) => {
  const chain = Array.from({ length: 5 }, (_, index) => [`l${index}`, `l${index + 1}`] as const);
  expect(linkThatLeadsOut(new Map([...chain, ["twice", target]]))).toBe(expected);
});
