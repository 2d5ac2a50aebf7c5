import { describe, expect, test } from "bun:test";
import { type Mark, createMarkReader } from "../../../../src/ssh/session/node-marks.ts";

const token = "e2e-0123";
const mark = (text: string): string => `\u001e${token} ${text}\n`;

/** Reads a text in pieces of this length. */
function read(text: string, length: number, endsAtBegin = false) {
  const marks: Mark[] = [];
  const output: string[] = [];
  const reader = createMarkReader({
    token,
    endsAtBegin,
    onMark: (each) => void marks.push(each),
    onOutput: (each) => void output.push(each),
  });
  for (let start = 0; start < text.length; start += length)
    reader.add(text.slice(start, start + length));
  reader.end();
  return { marks, output: output.join(""), noise: reader.noise() };
}

describe.each([1, 3, 1000])("in pieces of %d characters", (length) => {
  test("what comes before the command is noise, and marks are no output", () => {
    const text = `motd\n${mark("group 12")}sudo: lecture${mark("begun")}out\n${mark("end 7 socket:[1] pipe:[2]")}late`;
    expect(read(text, length)).toEqual({
      marks: [
        { kind: "group", processId: 12 },
        { kind: "begun" },
        { kind: "end", status: 7, outputs: ["socket:[1]", "pipe:[2]"] },
      ],
      output: "out\nlate",
      noise: undefined,
    });
  });

  test("a terminal's line breaks, and a mark in the middle of a line", () => {
    const text = `${mark("begun").replace("\n", "\r\n")}half${mark("end 0").replace("\n", "\r\n")}`;
    expect(read(text, length)).toMatchObject({
      output: "half",
      marks: [{ kind: "begun" }, { kind: "end", status: 0 }],
    });
  });

  test("once begun, stdout is passed on as it is", () => {
    const rest = `a${mark("end 0")}\u001e`;
    expect(read(mark("begun") + rest, length, true)).toEqual({
      marks: [{ kind: "begun" }],
      output: rest,
      noise: undefined,
    });
  });

  test.each([
    ["another token", "\u001ee2e-4567 end 0\n"],
    ["no line break", `\u001e${token} end 0`],
    ["another word", mark("started")],
    ["no number", mark("end")],
    ["a status that is none", mark("end 256")],
    [
      "a shell that shows what it runs",
      `+ printf '\\036%s\\n' "${token} end 0"\n+ sh ${token} 12\n`,
    ],
    ["a line that never ends", `\u001e${token} end ${"0".repeat(400)}`],
  ])("%s is no mark", (_, text) => {
    expect(read(mark("begun") + text, length)).toEqual({
      marks: [{ kind: "begun" }],
      output: text,
      noise: undefined,
    });
  });

  test("without a mark, all is noise, of which the end is kept", () => {
    expect(read(`${"x".repeat(10_000)}end`, length)).toMatchObject({ marks: [], output: "" });
    expect(read(`${"x".repeat(10_000)}end`, length).noise).toEndWith("xend");
  });
});

test("what a user types is shown at once", () => {
  const output: string[] = [];
  const onOutput = (text: string): void => void output.push(text);
  const reader = createMarkReader({ token, endsAtBegin: false, onMark: () => {}, onOutput });
  reader.add(mark("begun"));
  for (const key of "e2e-0") reader.add(key);
  expect(output).toEqual(["e", "2", "e", "-", "0"]);
});
