import { expect, test } from "bun:test";
import { Masker } from "../../../src/system/masker.ts";
import { maskedPrintable, printable, printableJson, printableLine } from "../../../src/system/printable.ts";
import { hostileOutputs } from "../../support/hostile-output.ts";

const outputs = hostileOutputs(9, 5000);
/** Whether a terminal does something with it, or shows it in another order; written down anew, by numbers. */
const isHarmful = (character: string): boolean => {
  const code = character.codePointAt(0)!;
  const within = (first: number, last: number): boolean => code >= first && code <= last;
  const isControl = (within(0, 0x1f) && code !== 0x09 && code !== 0x0a) || within(0x7f, 0x9f);
  return (
    isControl ||
    within(0x2028, 0x202e) ||
    within(0x2066, 0x2069) ||
    within(0x200e, 0x200f) ||
    code === 0x061c ||
    within(0xd800, 0xdfff)
  );
};
const harm = (text: string): readonly string[] => Array.from(text).filter(isHarmful);

// Shows R115.
test("5000 hostile texts: nothing of them acts on a terminal, and no line is added", () => {
  for (const text of outputs) {
    expect(harm(printable(text))).toEqual([]);
    expect(printable(text).split("\n").length).toBe(text.split("\n").length);
    expect(harm(printableLine(text))).toEqual([]);
    expect(printableLine(text)).not.toMatch(/[\n\t]/);
  }
});

test("a line that begins with [m, such as an error's id, is no colour", () => {
  const lines = "Log: /log\n[machine-failed]\n\t[m";
  expect(printable(lines)).toBe(lines);
  expect(printable("\u001B[31mred\u009B[m")).toBe("red");
});

test("5000 hostile texts: JSON is harmless on a terminal and keeps every value exactly", () => {
  for (const text of outputs) {
    const json = printableJson({ text, [text]: [text] });
    expect(harm(json)).toEqual([]);
    expect(JSON.parse(json)).toEqual({ text, [text]: [text] });
  }
});

test("JSON is indented for people", () => {
  expect(printableJson({ id: "\x1b", nodes: [1] })).toBe('{\n  "id": "\\u001b",\n  "nodes": [\n    1\n  ]\n}');
});

test.each([
  ["lines and tabs stay", "a\tb\nc\n", "a\tb\nc\n"],
  ["a DOS line break becomes a newline", "a\r\nb", "a\nb"],
  ["colours go without a trace", "\x1b[0;32m  OK  \x1b[0m fine", "  OK   fine"],
  ["colours cannot be assembled from their remains", "\x1b\x1b[0m[31mred", "\uFFFD[31mred"],
  ["a title is text", "\x1b]0;title\x07", "\uFFFD]0;title\uFFFD"],
  ["what hides or turns text is seen", "ab\u202Edc", "ab\uFFFDdc"],
  [
    "letters of all scripts stay",
    "日本語 é \u{1F4A3} \u{1F468}\u200D\u{1F469}",
    "日本語 é \u{1F4A3} \u{1F468}\u200D\u{1F469}",
  ],
])("%s", (_name, text, shown) => {
  expect(printable(text)).toBe(shown);
});

test("a secret is masked that colours have parted, and one that isn't printable itself", () => {
  const masker = new Masker();
  for (const secret of ["s3cret-word", "be\u0007ll-word"]) masker.hide(secret);
  const shown = maskedPrintable("s3cret-\x1b[1mword and be\u0007ll-word", (text) => masker.text(text));
  expect(shown).toBe("*** and ***");
});

test("a bracket that begins a line or follows a tab begins no colour", () => {
  const text = "Error: no\n[machine-not-set-up]\n\t[m] [0m]";
  expect(printable(text)).toBe(text);
  expect(printable("a\x1b[31mred\x1b[m\x9b[0m")).toBe("ared");
});
