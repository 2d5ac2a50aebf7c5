import { expect, test } from "bun:test";
import { findSlowExpressions } from "../../../scripts/slow-expressions/find-slow-expressions.ts";

const problemOf = (expression: string): string | undefined =>
  findSlowExpressions("file.ts", `export const found = "x".replace(${expression}, "");`)[0]
    ?.problem;

test.each([
  String.raw`/[.\s]+$/`,
  String.raw`/=+$/`,
  String.raw`/(?:a+)+b/`,
  String.raw`/^\d*\w+$/`,
  String.raw`/ for \[.*\]/`,
  String.raw`/container .* does not exist/`,
  String.raw`/^(?:Control ?[Ss]ocket |mux)[^\n]*\n/gm`,
  String.raw`/^qemu-system-\w+ .*hostfwd=.* -daemonize$/`,
  String.raw`/^(.*)host=(.*) -x$/`,
  String.raw`/\/\*[\s\S]*?\*\//`,
])("%s is slow", (expression) => {
  expect(problemOf(expression)).toMatch(/quadratic|exponential/);
});

test.each([
  String.raw`/^(\S+) (.*) (\S+)$/`,
  String.raw`/"[^"]*"/g`,
  String.raw`/^#\d+ \[[^\]]*\] (.*)$/`,
  String.raw`/ for \[.{0,500}\]/`,
  String.raw`/\{[^{}]*\}/g`,
  String.raw`/^mux/`,
])("%s is not", (expression) => {
  expect(problemOf(expression)).toBeUndefined();
});

test("a slow expression is reported with its line", () => {
  const [found] = findSlowExpressions("file.ts", "const a = /x/;\n\nconst b = /a+$/;\n");
  expect(found).toMatchObject({ line: 3, expression: "/a+$/" });
});
