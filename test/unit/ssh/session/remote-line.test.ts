import { expect, test } from "bun:test";
import {
  type LineParts,
  afterToken,
  endGroupLine,
  processMark,
  remoteLine,
  shownLine,
} from "../../../../src/ssh/session/session-line.ts";

const token = "e2e-0123";
const mark = 'echo "e2e-0123 $$" >&2; echo e2e-0123 2>&1; ';

test.each([
  [{ argv: ["id", "-un"] }, "exec id -un"],
  [{ argv: ["id"], sudo: true }, "exec sudo -n -H -- id"],
  [{ argv: ["id"], cwd: "/a b" }, "cd -- '/a b' && exec id"],
  [{ argv: ["id"], environment: { A: "1 2", B: "" } }, "export A='1 2' && export B='' && exec id"],
  [{ argv: ["id"], cwd: "/x", sudo: true }, "exec sudo -n -H -- sh -c 'cd -- /x && exec id'"],
] satisfies [LineParts, string][])("%j becomes %s", (parts, line) => {
  expect(remoteLine(parts, "admin", token)).toBe(mark + line);
});

test("root needs no sudo", () => {
  expect(remoteLine({ argv: ["id"], sudo: true }, "root", token)).toBe(`${mark}exec id`);
});

test("a name that is none for an environment variable is a fault of the program", () => {
  expect(() => remoteLine({ argv: ["id"], environment: { "A;id": "" } }, "root", token)).toThrow(TypeError);
});

test("people see neither the mark nor all of a script", () => {
  const argv = ["sh", "-c", "\nset -e\nid\n", "name", "it's"];
  expect(shownLine({ argv, sudo: true }, "admin")).toBe("exec sudo -n -H -- sh -c 'set -e …' name 'it'\\''s'");
});

test.each([
  ["e2e-0123 12\nrest", { processId: 12, rest: "rest" }],
  ["from .bashrc\ne2e-0123 12\n", { processId: 12, rest: "" }],
  ["\u001b[2Je2e-0123 12\nrest\n", { processId: 12, rest: "rest\n" }],
  ["e2e-0123 12", undefined],
  ["e2e-4567 12\n", undefined],
  ["e2e-0123 \n", undefined],
])("in %j the process group is %j", (text, found) => {
  expect(processMark(text, token)).toEqual(found);
});

test.each([
  ["e2e-0123\nrest\n", "rest\n"],
  ["from .bashrc\ne2e-0123\n", ""],
  ["\u001b[2Je2e-0123\nrest", "rest"],
  ["e2e-0123", undefined],
  ["e2e-4567\nrest", undefined],
])("of %j the command's own output is %j", (text, rest) => {
  expect(afterToken(text, token)).toBe(rest);
});

test("a process group is ended by its leader's number", () => {
  expect(endGroupLine(12, false)).toMatch(/^exec sh -c 'groups=\$1\n.+kill -TERM.+' sh 12$/s);
  expect(endGroupLine(12, true)).toMatch(/^exec sudo -n -- sh -c 'groups=\$1\n.+kill -TERM.+' sh 12$/s);
});
