import { outside, unmarked } from "../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { Masker } from "../../../src/system/masker.ts";
import {
  isPlainLine,
  maskedPrintable,
  messageBlock,
  plainLine,
  plainLines,
  outsideReason,
  printable,
  printableJson,
  outsideLine,
  outsideLines,
  withoutFullStop,
} from "../../../src/system/printable.ts";
import { hostileOutputs } from "../../support/hostile-output.ts";
import { unprintable } from "../../support/hostile-text.ts";

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

// Shows R132.
test("5000 hostile texts: nothing of them acts on a terminal, and no line is added", () => {
  for (const text of outputs) {
    expect(harm(printable(text))).toEqual([]);
    expect(printable(text).split("\n").length).toBe(text.split("\n").length);
    expect(plainLine(text)).not.toMatch(unprintable);
    expect(plainLine(text).length).toBeLessThanOrEqual(500);
    for (const line of messageBlock(text).split("\n").slice(1)) expect(line).toStartWith("  ");
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
  expect(printableJson({ id: "\x1b", nodes: [1] })).toBe(
    '{\n  "id": "\\u001b",\n  "nodes": [\n    1\n  ]\n}',
  );
});

test.each([
  ["lines and tabs stay", "a\tb\nc\n", "a\tb\nc\n"],
  ["a DOS line break becomes a newline", "a\r\nb", "a\nb"],
  ["so does one that a terminal wrote for a program that writes DOS ones", "a\r\r\nb", "a\nb"],
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
  const shown = maskedPrintable("s3cret-\x1b[1mword and be\u0007ll-word", (text) =>
    masker.text(text),
  );
  expect(shown).toBe("*** and ***");
});

test("a bracket that begins a line or follows a tab begins no colour", () => {
  const text = "Error: no\n[machine-not-set-up]\n\t[m] [0m]";
  expect(printable(text)).toBe(text);
  expect(printable("a\x1b[31mred\x1b[m\x9b[0m")).toBe("ared");
});

test("a text from outside becomes one line", () => {
  expect(plainLine("  Client.Shutdown: a\r\n\tb\u001B[31m c\u202E\u2028d ")).toBe(
    "Client.Shutdown: a b c\uFFFD d",
  );
  expect(["", " \n", undefined, 7, {}].map((found) => plainLine(found))).toEqual([
    "",
    "",
    "",
    "",
    "",
  ]);
});

test("a long text is cut at a word, so that no secret loses only its end, and never inside a character", () => {
  expect(plainLine("one two three", 10)).toBe("one two…");
  expect(plainLine("abcdefghijklmn", 10)).toBe("abcdefghi…");
  expect(plainLine("\u{1F4A3}".repeat(9), 4)).toBe("\u{1F4A3}\uFFFD…");
});

test.each([
  ["::set-output name=x::y", ": :set-output name=x::y"],
  ["a ::error::b", "a : :error::b"],
  ["##vso[task.setvariable variable=x]y", "# #vso[task.setvariable variable=x]y"],
  ["a##[error]b", "a# #[error]b"],
  ["##teamcity[buildStop]", "# #teamcity[buildStop]"],
  ["#\u001B[31m#vso[x]", "# #vso[x]"],
  ["std::string, [::1]:22 and ## heading", "std::string, [::1]:22 and ## heading"],
])("commands of CI systems lose their effect: %s", (text, shown) => {
  expect(plainLine(text)).toBe(shown);
  expect(messageBlock(`first\n${text.replace("\u001B[31m", "")}`)).toBe(`first\n  ${shown}`);
});

test("nor does JSON hold any, and its values stay", () => {
  const data = { text: "###vso[x] ##[y]" };
  expect(printableJson(data)).not.toContain("##");
  expect(JSON.parse(printableJson(data))).toEqual(data);
});

test.each([
  ["one\n  two \n\n", "two"],
  ["one", "one"],
  ["one\r\ntwo.\r\n", "two"],
  ["no space left: ...", "no space left"],
  [" \n\n", ""],
  ["", ""],
])("the reason in %j is %j", (text, line) => {
  expect(unmarked(outsideReason(text))).toBe(line);
});

test("the last lines leave out empty ones and are counted", () => {
  expect(plainLines("a\n\nb  \n\n\nc\n", 2)).toEqual(["b", "c"]);
  expect(plainLines("\n".repeat(10_000_000), 2)).toEqual([]);
  expect(plainLines("x\n".repeat(5_000_000), 2)).toEqual(["x", "x"]);
});

test("a message has a limited number of lines, each of a limited length", () => {
  const shown = messageBlock(`first\n${"line\n".repeat(1000)}${"x".repeat(100_000)}`).split("\n");
  expect([shown.length, shown[0], shown.at(-1)]).toEqual([201, "first", "  …"]);
  expect(messageBlock("x".repeat(100_000)).length).toBe(4000);
  expect(messageBlock("one\n    two\nthree")).toBe("one\n    two\n  three");
});

test("a file's name is plain unless a terminal would show it in another way", () => {
  expect(["a b.txt", " ", "日本"].map(isPlainLine)).toEqual([true, true, true]);
  expect(["a\nb", "a\tb", "a\u001B[31mb", "\u202E"].map(isPlainLine)).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

test("what messages quote is marked, and what data holds is not", () => {
  expect(outsideLine(" one\n two")).toBe(outside("one two"));
  expect(outsideLine(5)).toBe("");
  expect(outsideLines("one\n\ntwo", 2)).toEqual([outside("one"), outside("two")]);
  expect(outsideReason("one\ntwo.")).toBe(outside("two"));
  expect(plainLine(outside("one"))).toBe("one");
  expect(withoutFullStop(outside("two."))).toBe(outside("two"));
});
