import { expect, test } from "bun:test";
import {
  type LineParts,
  endGroupLine,
  remoteLine,
  shownLine,
} from "../../../../src/ssh/session/session-line.ts";
import { quote } from "../../../../src/ssh/shell-text.ts";

const token = "e2e-0123";
const begun = `printf '\\036%s\\n' "e2e-0123 begun"; printf '\\036%s\\n' "e2e-0123 begun" >&2; `;
const marked = (line: string): string =>
  `printf '\\036%s\\n' "e2e-0123 group $$" >&2; exec 3>&2 2>/dev/null; ( ${line} ) 2>&3 3>&-; s=$?; printf '\\036%s\\n' "e2e-0123 end $s" >&3; exit $s`;

test.each([
  [{ argv: ["id", "-un"] }, `${begun}exec id -un`],
  [{ argv: ["id"], cwd: "/a b" }, `${begun}cd -- '/a b' && exec id`],
  [
    { argv: ["id"], environment: { A: "1 2", B: "" } },
    `${begun}export A='1 2' && export B='' && exec id`,
  ],
  [{ argv: ["id"], sudo: true }, `exec sudo -n -H -- sh -c ${quote([`${begun}exec id`])}`],
  [
    { argv: ["id"], cwd: "/x", sudo: true },
    `exec sudo -n -H -- sh -c ${quote([`${begun}cd -- /x && exec id`])}`,
  ],
] satisfies [LineParts, string][])("%j becomes %s", (parts, line) => {
  expect(remoteLine(parts, "admin", token)).toBe(marked(line));
});

test("root needs no sudo", () => {
  expect(remoteLine({ argv: ["id"], sudo: true }, "root", token)).toBe(marked(`${begun}exec id`));
});

test("a name that is none for an environment variable is a fault of the program", () => {
  expect(() => remoteLine({ argv: ["id"], environment: { "A;id": "" } }, "root", token)).toThrow(
    TypeError,
  );
});

test("people see neither the mark nor all of a script", () => {
  const argv = ["sh", "-c", "\nset -e\nid\n", "name", "it's"];
  expect(shownLine({ argv, sudo: true }, "admin")).toBe(
    "exec sudo -n -H -- sh -c 'set -e …' name 'it'\\''s'",
  );
});

test("a process group is ended by its leader's number", () => {
  expect(endGroupLine(12, false)).toMatch(/^exec sh -c '.+kill -TERM.+' sh 12$/s);
  expect(endGroupLine(12, true)).toMatch(/^exec sudo -n -- sh -c '.+kill -TERM.+' sh 12$/s);
});
