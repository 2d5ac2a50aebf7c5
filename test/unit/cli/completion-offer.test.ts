import { expect, test } from "bun:test";
import { defineCommand } from "../../../src/cli/command.ts";
import { completionOffer } from "../../../src/cli/completion.ts";
import { argument, option, wordsArgument } from "../../../src/cli/options/option.ts";
import { text, verbose } from "../../../src/cli/options/value-types.ts";
import { example } from "../../integration/cli/example-program.ts";
import { declared } from "./declared-program.ts";

const region = option(text, { flag: "--region", summary: "The region", isRepeated: true });

const list = defineCommand({
  name: "list",
  summary: "Lists nodes",
  description: "",
  positionals: {},
  options: { region, verbose },
  examples: [],
  run: async () => {},
});

const run = defineCommand({
  name: "run",
  summary: "Runs a command on a node",
  description: "",
  positionals: {
    node: argument(text, { name: "NODE", summary: "The node", completeWith: ["list"] }),
    words: wordsArgument("words", { name: "WORDS", summary: "The command" }),
  },
  options: { region, verbose },
  examples: [],
  run: async () => {},
});

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

test("there is a completion script for each of three shells", () => {
  expect(offered("completion", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
});

test("after an unknown command, nothing is offered", () => {
  expect(offered("nonsense", "")).toEqual(["words"]);
});

test("a word that begins with - is an option that can still be given", () => {
  expect(offered("greet", "-")).toContain("--tone");
  expect(offered("greet", "--t")).toContain("--tone");
  expect(offered("greet", "--tone", "warm", "-")).not.toContain("--tone");
  expect(offered("greet", "-v", "-")).toContain("--verbose");
  expect(offered("greet", "--", "-")).not.toContain("--tone");
});

test("a value is one of its choices, a file or a folder", () => {
  expect(offered("greet", "--tone", "")).toEqual(["words", "warm", "cold"]);
  expect(offered("greet", "--tone=")).toEqual(["words", "warm", "cold"]);
  expect(offered("greet", "--license", "")).toEqual(["files"]);
  expect(offered("greet", "--times", "")).toEqual(["words"]);
  expect(completionOffer(declared, ["fish", "create", "./artifact.sh", ""]).lines).toEqual([
    "directories",
  ]);
});

test("the words of another program get nothing, from the second one on", () => {
  expect(offered("child", "--")).toContain("--file");
  expect(offered("child", "ls", "--")).toEqual(["words"]);
  expect(offered("child", "ls", "-l", "")).toEqual(["words"]);
});

test("an argument that the program can list is listed by a command, with the options that it shares", () => {
  const { lines, command } = completionOffer(example, [
    "fish",
    "greet",
    "--since",
    "now",
    "--tone",
    "warm",
    "A",
  ]);
  expect([lines, command]).toEqual([["words"], ["people", "--since=now"]]);
  expect(completionOffer(example, ["fish", "greet", "Ada", ""]).command).toBeUndefined();
});

test("a command that lists candidates gets the options with a value that it shares", () => {
  const program = { ...declared, commands: [run, list] };
  const { command } = completionOffer(program, ["fish", "run", "-v", "--region", "eu-west-1", ""]);
  expect(command).toEqual(["list", "--region=eu-west-1"]);
  expect(completionOffer(program, ["fish", "run", "master_0", "ls", "--"])).toEqual({
    lines: ["words"],
  });
});

test("bash's own words around = are joined again", () => {
  const { lines } = completionOffer(example, ["bash", "greet", "--tone", "=", "w"]);
  expect(lines.map((line) => line.split("\t")[0])).toEqual(["words", "warm", "cold"]);
});
