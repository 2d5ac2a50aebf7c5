import { expect, test } from "bun:test";
import { shellText } from "../../../src/ssh/shell-text.ts";

const file = '#!/bin/sh\n# Prints a word.\n\nprintf \'%s|\' "$WORD" "$COUNT"\n';

test("a script gets its values exactly, whatever they contain, and not its header", () => {
  for (const word of ["", "it's", "$HOME `id`", "a\nb", "größe", "-n", "CLUSTER_E2E_END\n", "\\"]) {
    const text = shellText(file, { WORD: word, COUNT: 7 });
    expect(text).not.toContain("Prints a word");
    expect(Bun.spawnSync(["sh", "-c", text]).stdout.toString()).toBe(`${word}|7|`);
  }
});

test.each(["word", "A B", "A;B", "A=B", "_A", ""])("%j is no name for a value", (name) => {
  expect(() => shellText(file, { [name]: "x" })).toThrow(TypeError);
});

test("a NUL, which no shell takes, is refused", () => {
  expect(() => shellText(file, { WORD: "a\0b" })).toThrow("NUL");
});

test.each(["echo\n\necho\n", "# a comment\necho\n"])(
  "a file without a header is a fault: %j",
  (text) => {
    expect(() => shellText(text)).toThrow("header");
  },
);
