import { expect, test } from "bun:test";
import { completionOffer } from "../../../../src/cli/completion/completion-offer.ts";
import { example } from "../../../integration/cli/example-program.ts";

/** The first words of the lines that a shell is offered after these words. The last word is the one at the cursor. */
const offered = (...words: readonly string[]) =>
  completionOffer(example, ["fish", ...words]).lines.map((line) => line.split("\t")[0]);

test("the first word is a command or an option of the program", () => {
  expect(offered("")).toEqual(offered("gr"));
  expect(offered("")).toEqual([
    "words",
    ...example.commands.map(({ name }) => name),
    "--help",
    "-h",
    "--version",
    "--licenses",
  ]);
});

test("after an unknown command, nothing is offered", () => {
  expect(offered("nonsense", "")).toEqual(["words"]);
});

test("a word that begins with - is an option that can still be given", () => {
  expect(offered("greet", "-")).toContain("--tone");
  expect(offered("greet", "--tone", "warm", "-")).not.toContain("--tone");
  expect(offered("greet", "-v", "-")).toContain("--verbose");
  expect(offered("greet", "--", "-")).not.toContain("--tone");
});

test("the value of an option is one of its choices, or a file", () => {
  expect(offered("greet", "--tone", "")).toEqual(["words", "warm", "cold"]);
  expect(offered("greet", "--tone=")).toEqual(["words", "warm", "cold"]);
  expect(offered("greet", "--license", "")).toEqual(["files"]);
  expect(offered("greet", "--times", "")).toEqual(["words"]);
});

test("the words of another program get nothing, from the second one on", () => {
  expect(offered("child", "--")).toContain("--file");
  expect(offered("child", "ls", "--")).toEqual(["words"]);
  expect(offered("child", "ls", "-l", "")).toEqual(["words"]);
});

test("an argument that the program can list is listed by a command, with the options that it shares", () => {
  const { lines, command } = completionOffer(example, ["fish", "greet", "--since", "now", "--tone", "warm", "A"]);
  expect([lines, command]).toEqual([["words"], ["people", "--since=now"]]);
  expect(completionOffer(example, ["fish", "greet", "Ada", ""]).command).toBeUndefined();
});

test("bash's own words around = are joined again", () => {
  const { lines } = completionOffer(example, ["bash", "greet", "--tone", "=", "w"]);
  expect(lines.map((line) => line.split("\t")[0])).toEqual(["words", "warm", "cold"]);
});
